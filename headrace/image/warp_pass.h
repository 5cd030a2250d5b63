// SPDX-License-Identifier: Apache-2.0
// Computes the requested part of a warp's result, and passes its rows on while they are in the
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
  Window window;     // of it
  int x = 0, y = 0;  // of the source, where the window lies
};

// The value of one channel outside of the source.
double fill_of(const Warp& warp, bool is_mask, size_t channel);
// Whether its pixels are pixels of the source.
bool takes_nearest(const Warp& warp, bool is_mask);

class WarpPass {
 public:
  // REQUIRES: the part is inside the outcome, and within window_read(picture, part) the source's
  // pixels are those of the patches, which do not overlap, and `fill` beside them.
  void run(const WarpedPicture& picture, std::span<const WarpPatch> patches,
           const ChannelValues& fill, const Window& part, RowSink& sink);

  size_t held_bytes() const { return words_.capacity() + strip_.capacity() + places_.capacity(); }
  void free();
  // Upper bound of its memory for this one.
  static size_t working_bytes(const WarpedPicture& picture);

 private:
  class Rows;
  Buffer words_;   // a part of the source, a word a pixel
  Buffer strip_;   // rows of the outcome
  Buffer places_;  // of the pixels of one row
};

}  // namespace headrace
