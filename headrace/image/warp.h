// SPDX-License-Identifier: Apache-2.0
// A warp: each pixel of a new picture is looked up in the old one, at a position between
// pixels.
//
// A warp works on pixels that exist; so earlier operations are rendered first. Later ones start a
// new recipe, of which the warp is the source: so only the pixels that are needed in the end are
// computed, and go directly into the pass. Quarter turns and translations by whole pixels never
// become warps: they are edits of the recipe (fields/pictures.cc). How a warp is made of an angle
// is in affine.h.
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
#include "headrace/kernels/resample/filter.h"

namespace headrace {

// How pixels are made, the same whatever the warp is.
struct WarpStyle {
  Filter interpolation = Filter::kNearest;  // of images; masks always take the nearest pixel
  Arithmetic arithmetic = Arithmetic::kTorch;
  // For images, outside of the source: one value, or one per channel. None: black, into which
  // torchvision's bilinear edges do not fade. The operator's memory.
  std::span<const double> fill = {};
  double mask_fill = 0;
};

// Displacements of each pixel of a picture, as torchvision's elastic has them: shares of half its
// width and height.
struct WarpField {
  Size size;
  std::vector<float> x, y;  // size.height * size.width of each, and at least 16 more
  // Where the field only moves the lines of a grid, x and y: from where in the source the edges of
  // so many equal cells come, rising. Points are then found between them, and the field's x has a
  // number for each column (and 16 more), its y one for each row. Else empty.
  std::array<std::vector<double>, 2> lines = {};
};

// Element i of torch's linspace((1 - n) / n, (n - 1) / n, n): counted from the nearer end.
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
  // From a position in the result to one in the source: six numbers of an affine map, eight of a
  // perspective one. torch's affine map is relative to the centers of both pictures, Pillow's to
  // their corners.
  std::array<double, 8> lookup{};
  // From a point in the source to the result, relative to the corner: six or eight numbers
  // likewise.
  std::array<double, 8> points{};
  bool grows = false;  // the outcome is as large as it must be: points are counted from its corner
  // It is this many counterclockwise quarter turns, and no pixel is interpolated.
  std::optional<int> quarter_turns = {};
  // It moves by this many whole pixels, to the right and down, less than the picture's size, and no
  // pixel is interpolated.
  std::optional<std::array<int, 2>> shift = {};
  // shared: by the pictures of a size, until they are rendered
  std::shared_ptr<const WarpField> field = {};

  // Whether points can only be moved by the inverse of the displacement at their position.
  bool bends() const { return field && field->lines[0].empty(); }
};

struct Collage;

// A warp of a picture, or of a collage, of which only the part that the warp reads
// is made then. The style's fill has no value, one, or one per channel.
struct WarpedPicture {
  std::shared_ptr<const Picture> from;  // shared: with other recipes that begin there
  Warp warp;
  bool is_mask = false;
  std::shared_ptr<const Collage> collage = {};  // shared likewise; else null, and `from` is not
};
Size source_size(const WarpedPicture& picture);
int source_channels(const WarpedPicture& picture);
DType dtype_of(const WarpedPicture& picture);  // of source and outcome

// The part of a source of this size from which a part of the warp's outcome is made, with what
// vector loops read beside it; never empty. All of it if nothing better is known.
Window window_read(const WarpedPicture& picture, const Window& part);

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
