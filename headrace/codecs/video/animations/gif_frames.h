// SPDX-License-Identifier: Apache-2.0
// The blocks of a GIF file: CompuServe's GIF89a specification, read as Pillow reads it. Hostile
// files yield fewer frames, never more than the file holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "headrace/codecs/window.h"

namespace headrace {

using GifPalette = std::span<const uint8_t>;  // red, green, blue; empty: none, use grays

struct GifScreen {
  int width = 0, height = 0;
  GifPalette palette;
  uint8_t background = 0;  // index into the palette; 0 if there is none
  size_t end = 0;          // bytes, with the palette
};
// Empty if these are not the first bytes of a GIF, or too few.
std::optional<GifScreen> gif_screen(std::span<const uint8_t> bytes);

struct GifFrame {
  Window place;  // on the screen; may be empty
  bool interlaced = false;
  bool own_palette = false;
  GifPalette palette;  // if it has its own
  std::optional<uint8_t> transparent;
  int disposal = 0;               // 0: not specified
  int64_t hundredths = 0;         // duration
  int code_bits = 0;              // initial code size
  std::span<const uint8_t> data;  // sub-blocks
  bool whole = false;             // its data is complete
  size_t end = 0;                 // of its blocks
};
// The next frame at or after `at`; empty if there are no more. A file that is truncated inside a
// block has one more frame, which is incomplete and may have no position.
std::optional<GifFrame> next_gif_frame(std::span<const uint8_t> bytes, size_t at);

// The indices of a frame's pixels, in stored row order. False if there are fewer than out.size().
bool unpack_gif_frame(const GifFrame& frame, std::span<uint8_t> out);

}  // namespace headrace
