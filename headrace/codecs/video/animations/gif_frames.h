// SPDX-License-Identifier: Apache-2.0
// The blocks of a GIF file: CompuServe's GIF89a specification, read as Pillow reads it. Hostile
// bytes give fewer frames, never more than the bytes hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "headrace/codecs/window.h"

namespace headrace {

using GifPalette = std::span<const uint8_t>;  // red, green, blue; empty: none, the gray ones

struct GifScreen {
  int width = 0, height = 0;
  GifPalette palette;
  uint8_t background = 0;  // an index of the palette; 0 without one
  size_t end = 0;          // bytes, with the palette
};
// Nothing where these are no GIF's first bytes, or no more.
std::optional<GifScreen> gif_screen(std::span<const uint8_t> bytes);

struct GifFrame {
  Window place;  // on the screen; may be empty
  bool interlaced = false;
  bool own_palette = false;
  GifPalette palette;  // where it has its own
  std::optional<uint8_t> transparent;
  int disposal = 0;               // 0: not said
  int64_t hundredths = 0;         // duration
  int code_bits = 0;              // of the smallest codes
  std::span<const uint8_t> data;  // sub-blocks
  bool whole = false;             // its data end before the file does
  size_t end = 0;                 // of its blocks
};
// The next one at or behind `at`; nothing where the file has no more. A file that ends inside of a
// block has one more, which is not whole and may have no place.
std::optional<GifFrame> next_gif_frame(std::span<const uint8_t> bytes, size_t at);

// The indices of a frame's pixels, as rows are stored. False where there are fewer than `out`.
bool unpack_gif_frame(const GifFrame& frame, std::span<uint8_t> out);

}  // namespace headrace
