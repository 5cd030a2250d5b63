// SPDX-License-Identifier: Apache-2.0
// Computes the requested part of a warp's result, and forwards its rows while they are in the
// cache. Keeps its memory between pictures. Not thread-safe.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"
#include "headrace/image/warp.h"

namespace headrace {

// Pixels of a warp's source.
struct WarpPatch {
  const Picture* picture = nullptr;
  Window window;     // of the picture
  int x = 0, y = 0;  // position of the window in the source
};

// The value of a channel outside the source.
double fill_of(const Warp& warp, bool is_mask, size_t channel);
// Whether the result consists of unchanged pixels of the source.
bool takes_nearest(const Warp& warp, bool is_mask);

class WarpPass {
 public:
  // REQUIRES: the part is inside the result; within window_read(picture, part), the source consists
  // of the patches, which do not overlap, and of `fill` outside them.
  void run(const WarpedPicture& picture, std::span<const WarpPatch> patches,
           const ChannelValues& fill, const Window& part, RowSink& sink);

  size_t held_bytes() const { return words_.capacity() + strip_.capacity() + places_.capacity(); }
  void free();
  // Upper bound on its memory for this picture.
  static size_t working_bytes(const WarpedPicture& picture);

 private:
  class Rows;
  Buffer words_;   // a part of the source, one word per pixel
  Buffer strip_;   // rows of the result
  Buffer places_;  // source positions of the pixels of one row
};

// Does the same as WarpPass for pictures whose pixels do not fit into a 32-bit word: 16-bit or
// float32 samples, or more than four channels. Uses torchvision's arithmetic on tensors; for the
// nearest pixel, Pillow's arithmetic is also supported.
//
// Whether WarpPass does not support the picture.
bool needs_generic_warp(const WarpedPicture& picture);
// Computes a part of the result. REQUIRES: not a collage; uint8, uint16 or float32; nearest, or
// torch's bilinear.
Picture generic_warp(const WarpedPicture& picture, const Window& part);

}  // namespace headrace
