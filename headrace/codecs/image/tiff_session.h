// SPDX-License-Identifier: Apache-2.0
// Decodes one image in memory with libtiff: its errors are kept as text, its allocations are
// bounded by the file's size, and nothing is printed. A TiffSession belongs to one thread.
#pragma once

#include <tiffio.h>

#include <cstdint>
#include <span>
#include <string>

#include "headrace/codecs/run_time_library.h"

namespace headrace {

struct TiffLibrary {
  RunTimeLibrary library{"libtiff.so.6", "libtiff6"};
  decltype(&TIFFClientOpenExt) open = nullptr;
  decltype(&TIFFOpenOptionsAlloc) options = nullptr;
  decltype(&TIFFOpenOptionsFree) free_options = nullptr;
  decltype(&TIFFOpenOptionsSetMaxSingleMemAlloc) set_memory = nullptr;
  decltype(&TIFFOpenOptionsSetErrorHandlerExtR) set_errors = nullptr;
  decltype(&TIFFOpenOptionsSetWarningHandlerExtR) set_warnings = nullptr;
  decltype(&TIFFClose) close = nullptr;
  decltype(&TIFFSetDirectory) set_directory = nullptr;
  decltype(&TIFFNumberOfDirectories) directories = nullptr;
  decltype(&TIFFGetField) get = nullptr;
  decltype(&TIFFGetFieldDefaulted) get_defaulted = nullptr;
  decltype(&TIFFSetField) set = nullptr;
  decltype(&TIFFIsTiled) is_tiled = nullptr;
  decltype(&TIFFIsCODECConfigured) has_codec = nullptr;
  decltype(&TIFFReadEncodedStrip) read_strip = nullptr;
  decltype(&TIFFReadEncodedTile) read_tile = nullptr;
  decltype(&TIFFReadRawStrip) read_raw_strip = nullptr;
  decltype(&TIFFReadRawTile) read_raw_tile = nullptr;
  decltype(&TIFFGetStrileByteCount) stored_bytes = nullptr;

  TiffLibrary();
};
// Loaded on first use. Any thread may call it.
const TiffLibrary& tiff_library();

class TiffSession {
 public:
  // REQUIRES: bytes outlive the session, and tiff_library() is open.
  explicit TiffSession(std::span<const uint8_t> bytes);
  ~TiffSession();
  TiffSession(const TiffSession&) = delete;
  TiffSession& operator=(const TiffSession&) = delete;

  TIFF* file() const { return file_; }  // null if it is not a TIFF
  std::span<const uint8_t> bytes() const { return bytes_; }
  const std::string& error() const { return error_; }  // libtiff's first error
  void forget_error() { error_.clear(); }
  // libtiff's message about an unreadable tag on which the pixels depend; empty if there is none.
  const std::string& lost() const { return lost_; }

 private:
  static int on_error(TIFF*, void* self, const char* module, const char* format, va_list values);
  static int on_warning(TIFF*, void* self, const char* module, const char* format, va_list values);
  static tmsize_t on_read(thandle_t self, void* out, tmsize_t size);
  static tmsize_t on_write(thandle_t, void*, tmsize_t) { return 0; }
  static toff_t on_seek(thandle_t self, toff_t offset, int whence);
  static int on_close(thandle_t) { return 0; }
  static toff_t on_size(thandle_t self);
  static int on_map(thandle_t, void**, toff_t*) { return 0; }
  static void on_unmap(thandle_t, void*, toff_t) {}

  std::span<const uint8_t> bytes_;
  uint64_t position_ = 0;
  std::string error_, lost_;
  TIFF* file_ = nullptr;
};

// The checksum error of strip or tile `number`; empty if it is correct, or if the compression has
// no checksums. Allocates memory for its stored bytes, which is limited by the file's size. libtiff
// may skip checksums: it stops decompressing once a strip or tile is
// complete, and the checksum comes later. (Builds with libdeflate check most of them.) Covers
// deflate, and Zstandard frames with a checksum; libtiff checks LZMA's itself.
std::string wrong_checksum(const TiffSession& session, uint32_t number);

}  // namespace headrace
