// SPDX-License-Identifier: Apache-2.0
// Keeps the rows of a window whose samples no byte holds: WidePass works on whole planes.
#pragma once

#include "headrace/image/picture.h"

namespace headrace {

class WideRows final : public RowSink {
 public:
  // For the rows of a width x height window.
  void begin(int channels, int width, int height, DType dtype);
  void rows(const RowBlock& block) override;
  // REQUIRES: all rows came. Valid until begin().
  const Picture& picture() const { return picture_; }

  size_t held_bytes() const { return picture_.pixels.capacity(); }
  void free() { picture_.pixels.free(); }

 private:
  Picture picture_;
};

}  // namespace headrace
