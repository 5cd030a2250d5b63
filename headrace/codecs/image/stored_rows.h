// SPDX-License-Identifier: Apache-2.0
// Rows as a file stores them -> as a job wants them. What the colors become is Pillow 13's
// convert("RGB") and convert("L"), for all codecs but JPEG, which has paths of its own:
// - alpha is dropped; the colors under it stay as they are stored. kRGBA keeps it.
// - palettes are looked up; an index past the palette's end is black, and opaque.
// - color to gray: (19595 R + 38470 G + 7471 B + 32768) / 65536, rounded down.
// - CMYK: 255 - K - C (255 - K) / 255, the quotient rounded.
// - gray of 16 bits is refused unless the user says how it is reduced: min(value, 255) is Pillow's
//   rule for its mode I;16, and spoils depths, scans and ids without a word.
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
// As ImageHeader::channels has it.
int channels_of(StoredColor color);
// Bytes of a pixel in a row: a byte a sample; two, in the machine's order, for kGray16.
int pixel_bytes_of(StoredColor color);

// HR0386 where a gray picture has more than 8 bits and the job does not say what becomes of them.
Result<void> check_sixteen_bit(const DecodeJob& job);

// Pillow's L24: ITU-R 601-2 luma in 16-bit fixed point.
inline uint8_t luma_of(int r, int g, int b) {
  return uint8_t((r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16);
}

class StoredRows {
 public:
  // Sets as many entries as the palette has; others are black. `alpha`: of the first ones; others
  // are opaque.
  void set_palette(std::span<const std::array<uint8_t, 3>> palette,
                   std::span<const uint8_t> alpha = {});
  // Hands rows y..y + count - 1 of the window over; `rows`: its first column in the first of them.
  // REQUIRES: check_sixteen_bit() was asked where the color is kGray16.
  void deliver(const DecodeJob& job, StoredColor color, const uint8_t* rows, ptrdiff_t stride,
               int y, int count);
  // The same of interleaved samples as a job for wider ones than bytes wants them.
  static void deliver_samples(const DecodeJob& job, int channels, const uint8_t* rows,
                              ptrdiff_t stride, int y, int count);
  // Hands all of the window over, of pixels that are the whole picture.
  void deliver_window(const DecodeJob& job, StoredColor color, const uint8_t* pixels,
                      ptrdiff_t stride);

 private:
  void deliver_block(const DecodeJob& job, StoredColor color, const uint8_t* rows, ptrdiff_t stride,
                     int y, int count);

  std::array<std::array<uint8_t, 4>, 256> rgba_{};
  std::array<uint8_t, 256> gray_{};
  Buffer converted_, with_alpha_;
};

// Rows of about this many bytes stay in the second-level cache.
int rows_of_a_block(size_t row_bytes);

}  // namespace headrace
