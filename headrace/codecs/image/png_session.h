// SPDX-License-Identifier: Apache-2.0
// Decodes one image in memory with libpng, made safe for C++: errors that libpng reports by longjmp
// are returned as `false`, warnings are counted and not printed, and allocations are counted and
// limited.
//
// Chunks that carry no pixels (text, profiles, gamma, EXIF) are skipped without being kept or
// inflated, so they cannot be decompression bombs.
// A PngSession belongs to one thread and serves one pass over one image.
#pragma once

#include <png.h>

#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace headrace {

// IHDR, and the format of libpng's rows after PngSession::start_rows().
struct PngInfo {
  int width = 0, height = 0;
  int depth = 8;  // bits per sample, as stored
  int color_type = PNG_COLOR_TYPE_RGB;
  bool interlaced = false;

  bool wide = false;          // 16-bit samples are not reduced
  bool key_to_alpha = false;  // a transparent color becomes an alpha channel

  bool palette() const { return color_type == PNG_COLOR_TYPE_PALETTE; }
  bool gray16() const { return color_type == PNG_COLOR_TYPE_GRAY && depth == 16; }
  bool has_alpha() const { return color_type & PNG_COLOR_MASK_ALPHA; }
  int stored_channels() const;                                                 // 1 for palettes
  int channels() const { return stored_channels() + (key_to_alpha ? 1 : 0); }  // of a decoded row
  // Bytes per pixel in a decoded row: one per sample; two, in native byte order, if samples stay
  // wide, and for 16-bit gray, because its reduction needs both.
  int pixel_bytes() const { return channels() * (wide || gray16() ? 2 : 1); }
  size_t row_bytes() const { return size_t(width) * pixel_bytes(); }
};

class PngSession {
 public:
  // REQUIRES: bytes outlive the session.
  explicit PngSession(std::span<const uint8_t> bytes);
  ~PngSession();
  PngSession(const PngSession&) = delete;
  PngSession& operator=(const PngSession&) = delete;

  // Each call returns false after an error; the session is then unusable. Reads up to the first
  // IDAT. Does not allocate memory in proportion to the header's numbers.
  bool read_info();
  // Allocates the rows' buffers; afterwards read_row gives one pixel in pixel_bytes() bytes.
  // `wide`: keeps 16-bit samples. `with_key`: see PngInfo; only for pictures with a color key and
  // without a palette.
  bool start_rows(bool wide = false, bool with_key = false);
  // Reads the next `count` rows of the current pass, each to rows + i * stride; null skips them.
  // For interlaced images each pass covers all rows and fills in only its own pixels.
  bool read_rows(uint8_t* rows, size_t stride, int64_t count);
  // Reads the rest of the file after the last row.
  bool read_end();

  const PngInfo& info() const { return info_; }
  int passes() const { return passes_; }
  std::span<const png_color> palette() const { return {palette_, size_t(palette_size_)}; }
  // Alpha values of the palette's first entries; the others are opaque.
  std::span<const uint8_t> palette_alpha() const { return {alpha_, size_t(alpha_size_)}; }
  bool has_transparent_color() const { return has_key_; }

  int warnings() const { return warnings_; }
  const char* first_warning() const { return first_warning_.data(); }
  const char* error() const { return error_.data(); }
  bool truncated() const { return truncated_; }          // the bytes ended too early
  bool out_of_memory() const { return out_of_memory_; }  // our limit, or the machine's
  size_t position() const { return position_; }          // bytes that libpng has consumed
  size_t peak_memory() const { return peak_memory_; }    // maximum bytes held by libpng

  // Limit of libpng's memory: before rows are read, and the additional limit for rows of this
  // width.
  static size_t memory_cap(int64_t width);

 private:
  using Message = std::array<char, 128>;

  // Runs a step that calls libpng. A longjmp out of libpng skips the destructors of this function
  // and of the step, so neither may have any.
  template <class Step>
  [[gnu::noinline]] bool guard(Step step) {
    static_assert(std::is_trivially_destructible_v<Step>);
    if (!png_ || failed_) return false;
    if (setjmp(jump_) != 0) return false;
    step();
    return true;
  }

  [[noreturn]] static void on_error(png_structp png, png_const_charp text);
  static void on_warning(png_structp png, png_const_charp text);
  static void on_read(png_structp png, png_bytep out, size_t length);
  static png_voidp on_allocate(png_structp png, png_alloc_size_t size);
  static void on_free(png_structp png, png_voidp memory);

  png_structp png_ = nullptr;
  png_infop png_info_ = nullptr;
  std::span<const uint8_t> bytes_;
  size_t position_ = 0;
  size_t memory_ = 0, peak_memory_ = 0, memory_limit_ = memory_cap(0);
  PngInfo info_;
  int passes_ = 1;
  png_colorp palette_ = nullptr;  // owned by libpng
  int palette_size_ = 0;
  png_bytep alpha_ = nullptr;  // likewise
  int alpha_size_ = 0;
  bool has_key_ = false;
  int warnings_ = 0;
  bool failed_ = false, truncated_ = false, out_of_memory_ = false;
  Message error_{}, first_warning_{};
  jmp_buf jump_;
};

}  // namespace headrace
