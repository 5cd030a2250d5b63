// SPDX-License-Identifier: Apache-2.0
// Computes the part of a warp's outcome that is wanted, and hands its rows on while they are in the
// cache. Keeps its memory between pictures. Not thread-safe.
#pragma once

#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"
#include "headrace/image/warp.h"

namespace headrace {

class WarpPass {
 public:
  // REQUIRES: the part is inside the outcome.
  void run(const WarpedPicture& picture, const Window& part, RowSink& sink);

  size_t held_bytes() const { return words_.capacity() + strip_.capacity() + places_.capacity(); }
  void free();
  // What it will hold at most for this one.
  static size_t working_bytes(const WarpedPicture& picture);

 private:
  class Rows;
  Buffer words_;   // the source, a word a pixel
  Buffer strip_;   // rows of the outcome
  Buffer places_;  // of the pixels of one row
};

}  // namespace headrace
