// SPDX-License-Identifier: Apache-2.0
// A warp: each pixel of the result is sampled from the source, at a position that may be between
// pixels.
//
// The source must be pixels, so earlier operations are rendered first. Later operations start a new
// recipe, whose source is the warp: so only the pixels that are needed in the end are computed, and
// go directly into the pass. Rotations by 90 degrees and translations by whole pixels never become
// warps: they are edits of the recipe (fields/pictures.cc). torchvision_warps.h makes a warp from
// an angle.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headrace/codecs/codec.h"
#include "headrace/image/picture.h"
#include "headrace/kernels/resample/filter.h"

namespace headrace {

// How pixels are sampled, independent of the map.
struct WarpStyle {
  Filter interpolation = Filter::kNearest;  // for images; masks always use the nearest pixel
  Arithmetic arithmetic = Arithmetic::kTorch;
  // The color of images outside the source: one value, or one per channel. Empty: black, without
  // the blend at the source's edges with which torchvision's bilinear applies a fill. Borrowed from
  // the operator.
  std::span<const double> fill = {};
  double mask_fill = 0;
};

// The displacement of each pixel of a picture, in torchvision's elastic units: fractions of half
// its width and height.
struct WarpField {
  Size size;
  std::vector<float> x, y;  // size.height * size.width each, plus at least 16
  // For a field that only moves the lines of a grid, separately in x and in y: the source positions
  // of the edges of equal cells, ascending. Points are then interpolated between them, and the
  // member `x` has one number per column (plus 16), `y` one per row. Otherwise empty.
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
  Size to;  // of the result
  // Maps a position in the result to one in the source: six coefficients if affine, eight if
  // perspective. torch's affine coefficients are relative to the centers of both pictures, Pillow's
  // to their corners.
  std::array<double, 8> lookup{};
  // Maps a point in the source to the result, relative to the corners: six or eight coefficients,
  // too.
  std::array<double, 8> points{};
  bool grows = false;  // the result is enlarged to fit the whole picture, and points are relative
                       // to its corner
  // If set, the warp is a rotation by this many counterclockwise quarter turns, and pixels are not
  // interpolated.
  std::optional<int> quarter_turns = {};
  // If set, the warp is a translation by this many whole pixels, to the right and down, less than
  // the picture's size, and pixels are not interpolated.
  std::optional<std::array<int, 2>> shift = {};
  // Shared by pictures of the same size, until they are rendered.
  std::shared_ptr<const WarpField> field = {};

  // Whether points can only be moved by inverting the displacement at their position.
  bool bends() const { return field && field->lines[0].empty(); }
};

struct Collage;

// A warp of a picture, or of a collage, of which only the part that the warp reads is rendered. The
// style's fill has no value, one value, or one value per channel.
struct WarpedPicture {
  std::shared_ptr<const Picture> from;  // shared: with other recipes that begin there
  Warp warp;
  bool is_mask = false;
  std::shared_ptr<const Collage> collage = {};  // shared likewise; if null, `from` is not null
};
Size source_size(const WarpedPicture& picture);
int source_channels(const WarpedPicture& picture);
DType dtype_of(const WarpedPicture& picture);  // of both source and result

// The part of the source that a part of the result depends on, including what vector loops read
// past it; never empty. The whole source if a smaller part is not known.
Window window_read(const WarpedPicture& picture, const Window& part);

// Offsets of the nearest pixels, row by row from the top of the part: y * width + x in the source,
// or -1 outside.
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
