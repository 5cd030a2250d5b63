// SPDX-License-Identifier: Apache-2.0
// A warp: each pixel of a new picture is looked up in the old one, at a place that is not a
// pixel's.
//
// A warp works on pixels that exist; so what comes before it is rendered first. What comes after
// starts a new recipe, of which the warp is the source: so only what is wanted in the end is ever
// computed, and goes straight into the pass. Identity and quarter turns never get here: they are
// edits of the recipe (fields/pictures.cc). How a warp is made of an angle is in affine.h.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headrace/codecs/codec.h"
#include "headrace/image/arithmetic.h"
#include "headrace/image/picture.h"
#include "headrace/kernels/filter.h"

namespace headrace {

// How pixels are made, the same whatever the warp is.
struct WarpStyle {
  Filter interpolation = Filter::kNearest;  // of images; masks always take the nearest pixel
  Arithmetic arithmetic = Arithmetic::kTorch;
  // Of images, where nothing of the source is: one value, or one a channel. None: black, into which
  // torchvision's bilinear edges do not fade. The operator's memory.
  std::span<const double> fill = {};
  double mask_fill = 0;
};

// Displacements of each pixel of a picture, as torchvision's elastic has them: shares of half its
// width and height.
struct WarpField {
  Size size;
  std::vector<float> x, y;  // size.height * size.width of each, and 16 more
};

// What torch's linspace((1 - n) / n, (n - 1) / n, n) has at i: counted from the nearer end.
template <class Real>
Real identity_at(int i, int n) {
  const auto first = static_cast<Real>((1.0 - n) / n), last = static_cast<Real>((n - 1.0) / n);
  if (n == 1) return first;
  const Real step = (last - first) / static_cast<Real>(n - 1);
  return i < n / 2 ? std::fma(step, static_cast<Real>(i), first)
                   : std::fma(-step, static_cast<Real>(n - 1 - i), last);
}

struct Warp {
  enum class Map : uint8_t { kAffine, kPerspective, kField };
  Map map = Map::kAffine;
  WarpStyle style;
  Size to;  // of what comes out
  // From a place of the outcome to one of the source: six numbers of an affine map, eight of a
  // perspective one. torch's affine map is about the middle of both pictures, Pillow's about their
  // corners.
  std::array<double, 8> lookup{};
  // Where points of the source go, about its corner: six or eight numbers likewise.
  std::array<double, 8> points{};
  bool grows = false;  // the outcome is as large as it must be: points are counted from its corner
  // It is that many quarter turns against the clock, and no pixel is mixed.
  std::optional<int> quarter_turns = {};
  // shared: by the pictures of a size, until they are rendered
  std::shared_ptr<const WarpField> field = {};
};

// What a warp will make of a picture. `from` has 8 bits; the style's fill has no value, one, or one
// a channel.
struct WarpedPicture {
  std::shared_ptr<const Picture> from;  // shared: with whoever else begins there
  Warp warp;
  bool is_mask = false;
};

// Offsets of the nearest pixels, row by row from the part's top: y * width + x of the source, or
// -1.
class NearestOffsets {
 public:
  // REQUIRES: the warp outlives it, and the part is inside of warp.to.
  NearestOffsets(const Warp& warp, Size from, const Window& part);
  ~NearestOffsets();
  // REQUIRES: room for part.width + 15, and no more rows than the part has.
  void next_row(int32_t* offsets);

  class Rows;

 private:
  std::unique_ptr<Rows> rows_;
};

}  // namespace headrace
