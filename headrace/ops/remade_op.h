// SPDX-License-Identifier: Apache-2.0
// Shared by operators that make a new picture from existing pixels: noise, and filters that need
// neighbors. They get 8-bit pixels, or float32 if they support it, at the current size.
#pragma once

#include "headrace/ops/pixel_op.h"

namespace headrace {

class RemadeOp : public PixelOp {
 public:
  using PixelOp::PixelOp;
  bool measures() const final { return true; }

 protected:
  // Replaces every image of the record by `remake(in, out)`, which fills an `out` of the same
  // shape.
  template <class Remake>
  Result<void> remake_all(OpContext& context, Remake&& remake) const {
    for (const int field : context.fields) {
      const auto pixels = pixels_now(context, field);
      if (!pixels) return pixels.error();
      const Picture& in = **pixels;
      auto out = std::make_shared<Picture>(in.channels, in.height, in.width, in.dtype);
      if (Result<void> done = remake(in, *out); !done) return done;
      context.record.fields[field].picture = Recipe(std::move(out));
    }
    return {};
  }
};

}  // namespace headrace
