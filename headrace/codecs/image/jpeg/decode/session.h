// SPDX-License-Identifier: Apache-2.0
// One libjpeg-turbo decompressor that is kept between images and returns errors as values.
//
// Owns the jpeg_decompress_struct; borrows the bytes of the open image until close(). For one
// thread. Messages of the library are kept, never printed; nothing ends the process.
//
// Note [Why libjpeg is called through guarded()]
// libjpeg reports a failure through error_exit, which must not return, so ours leaves by longjmp.
// That skips destructors; therefore every call of the library is in a step that owns nothing, and
// guarded() is a separate function whose frame has no variable that could be clobbered.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>

#include "headrace/base/error.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/decode/arrays.h"
#include "jpeglib.h"

namespace headrace {

class JpegSession {
 public:
  // A file may hold this many scans; real ones have about ten.
  //
  // Note [What scans may cost]
  // libjpeg walks the whole image for each scan, so a small file with a large size in its header
  // and many empty scans could keep it busy for minutes. So the number of blocks walked
  // is limited in proportion to the file's bytes, beyond a few free walks. A Huffman-coded file
  // spends at least a bit on every block, which allows 32 walks; the free ones are for arithmetic
  // codes, which need less.
  static constexpr int kMaxScans = 500;
  static constexpr int64_t kFreeWalks = 16, kBlocksPerByte = 256;

  JpegSession();
  ~JpegSession();
  JpegSession(const JpegSession&) = delete;
  JpegSession& operator=(const JpegSession&) = delete;

  // Reads the header, up to the first scan; rejects unsupported types by name. Does not allocate
  // memory in proportion to the header's numbers before start().
  Result<void> open(std::span<const uint8_t> bytes);
  // Frees what the open image holds; harmless if none is open.
  void close();

  // libjpeg's allocations: for pixels, or for all coefficients (always the whole image's).
  size_t pixel_bytes() const;
  size_t coefficient_bytes() const;

  // Lets the library allocate this much; exceeding it is an error.
  void limit_memory(size_t bytes);
  // Begins decoding to cinfo().out_color_space; reads all scans of a file that has several.
  Result<void> start();

  // Runs a step that calls libjpeg; false if the library failed: failure() has the reason.
  // REQUIRES: the step owns nothing with a destructor (Note [Why libjpeg is called through
  // guarded()]).
  template <class Step>
  [[gnu::noinline]] bool guarded(const Step& step) {
    if (setjmp(jump_)) return false;
    step();
    return true;
  }

  // The library's last failure; `code` unless a more specific one applies.
  Error failure(const ErrorCode& code) const;
  // The first warning, as an error.
  Error first_warning() const;
  int warnings() const;
  // The first of libjpeg's MCU rows that the file has no data for, as far as was read; kNoRow if it
  // has all. For a file with several scans: the first row missing from a scan that is needed.
  static constexpr int kNoRow = 1 << 30;
  int first_missing_row() const { return first_missing_row_; }
  int64_t offset() const;  // of the next byte that the library will read

  jpeg_decompress_struct& cinfo() { return cinfo_; }

 private:
  static JpegSession& of(j_common_ptr cinfo) {
    return *static_cast<JpegSession*>(cinfo->client_data);
  }
  static void on_error(j_common_ptr cinfo);
  static void on_message(j_common_ptr cinfo, int level);
  static void on_progress(j_common_ptr cinfo);
  static boolean on_resync(j_decompress_ptr cinfo, int desired);
  static void* allocate_for_image(j_common_ptr cinfo, int pool, size_t bytes);

  void create();
  void keep_coefficients_here();
  Result<void> check_kind() const;
  void note_end_of_scan();
  int64_t allowed_blocks() const;
  void find_missing_scans();

  jpeg_decompress_struct cinfo_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf jump_;
  decltype(jpeg_memory_mgr::alloc_small) allocate_ = nullptr;
  decltype(jpeg_memory_mgr::realize_virt_arrays) realize_ = nullptr;
  JpegArrays arrays_;
  std::span<const uint8_t> bytes_;
  int frame_ = 0;  // code of the SOFn marker
  bool multiple_scans_ = false;
  bool too_many_scans_ = false;
  bool reads_scans_ = false;                      // reads all scans before it makes pixels
  int64_t blocks_read_ = 0, blocks_allowed_ = 0;  // Note [What scans may cost]
  bool file_ended_ = false;                       // the bytes end before the end marker
  int first_missing_row_ = kNoRow;
  int64_t failure_offset_ = -1, warning_offset_ = -1;
  char failure_text_[JMSG_LENGTH_MAX] = {}, warning_text_[JMSG_LENGTH_MAX] = {};
};

// Error codes that both the pixels' and the coefficients' path use.
extern const ErrorCode kJpegHeader, kJpegNoPixels, kJpegDamaged;

}  // namespace headrace
