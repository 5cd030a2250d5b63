// SPDX-License-Identifier: Apache-2.0
// Converts rows from the file's format to the decode job's. Colors are converted like Pillow 13's
// convert("RGB") and convert("L"), for all codecs except JPEG, which has its own conversions:
// - alpha is dropped; the colors under it are unchanged. kRGBA keeps it.
// - palettes are looked up; an index past the palette's end is black, and opaque.
// - color to gray: (19595 R + 38470 G + 7471 B + 32768) / 65536, rounded down.
// - CMYK: 255 - K - C (255 - K) / 255, the quotient rounded.
// - 16-bit gray is rejected unless the user specifies how to reduce it: min(value, 255) is Pillow's
//   rule for its mode I;16, which silently ruins depths, scans and ids.
// Stored (ColorMode::kStored): all channels kept, palette indices one to a byte.
//
// A StoredRows belongs to one decoder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"

namespace headrace {

enum class StoredColor : uint8_t { kGray, kGrayAlpha, kRGB, kRGBA, kCMYK, kPalette, kGray16 };
// Same as ImageHeader::channels.
int channels_of(StoredColor color);
// Bytes per pixel in a row: one per sample; for kGray16 two, in native byte order.
int pixel_bytes_of(StoredColor color);

// HR0386 if a gray image has more than 8 bits and the job does not specify how to reduce them.
Result<void> check_sixteen_bit(const DecodeJob& job);

// Pillow's L24: ITU-R 601-2 luma in 16-bit fixed point.
inline uint8_t luma_of(int r, int g, int b) {
  return uint8_t((r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16);
}

class StoredRows {
 public:
  // Sets the palette's entries; others are black. `alpha`: for the first ones; others are opaque.
  void set_palette(std::span<const std::array<uint8_t, 3>> palette,
                   std::span<const uint8_t> alpha = {});
  // Delivers rows y..y + count - 1 of the window; `rows` points to its first column in the first of
  // them. REQUIRES: check_sixteen_bit() succeeded for the color kGray16.
  void deliver(const DecodeJob& job, StoredColor color, const uint8_t* rows, ptrdiff_t stride,
               int y, int count);
  // The same for interleaved samples wider than bytes, as the job requests them.
  static void deliver_samples(const DecodeJob& job, int channels, const uint8_t* rows,
                              ptrdiff_t stride, int y, int count);
  // Delivers the whole window from the pixels of the whole image.
  void deliver_window(const DecodeJob& job, StoredColor color, const uint8_t* pixels,
                      ptrdiff_t stride);

 private:
  void deliver_block(const DecodeJob& job, StoredColor color, const uint8_t* rows, ptrdiff_t stride,
                     int y, int count);

  std::array<std::array<uint8_t, 4>, 256> rgba_{};
  std::array<uint8_t, 256> gray_{};
  Buffer converted_, with_alpha_;
};

// Rows of about this many bytes fit in the L2 cache.
int rows_per_block(size_t row_bytes);

}  // namespace headrace
