// SPDX-License-Identifier: Apache-2.0
// Keeps the rows of a window, to hand them over transposed: what EXIF orientations 5 to 8 need.
#pragma once

#include <cstddef>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"

namespace headrace {

class WindowBuffer final : public RowSink {
 public:
  // For the rows of a width x height window.
  void begin(int channels, int width, int height);
  void rows(const RowBlock& block) override;
  // The window transposed, height x width: all rows as one block, valid until begin().
  RowBlock transposed();

  size_t held_bytes() const { return kept_.capacity() + transposed_.capacity(); }
  void free();
  static size_t working_bytes(int channels, int width, int height);

 private:
  int channels_ = 0, width_ = 0, height_ = 0;
  ptrdiff_t stride_ = 0, transposed_stride_ = 0;
  Buffer kept_, transposed_;
};

}  // namespace headrace
