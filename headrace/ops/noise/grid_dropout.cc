// SPDX-License-Identifier: Apache-2.0
// GridDropout: holes in a regular grid are set to one value (GridMask).
#include <algorithm>
#include <string>

#include "headrace/base/registry.h"
#include "headrace/ops/noise/dropout.h"

namespace headrace {
namespace {

constexpr std::string_view kGrid = "GridDropout";

const ErrorCode kTooManyHoles{
    "HR0509", ErrorKind::kData, "too many holes in an image",
    "A grid of small cells over a large image exceeds the limit of 65,536 holes per record. Use "
    "larger cells, or a Resize before the transform."};
constexpr int64_t kMaxHoles = 1 << 16;

class GridDropout final : public DropoutOp {
 public:
  explicit GridDropout(const Arguments& arguments)
      : DropoutOp(kGrid, arguments),
        ratio_(arguments.number("ratio")),
        random_offset_(arguments.flag("random_offset")) {
    if (arguments.is_none("unit_size_range")) return;
    const std::vector<int64_t>& range = arguments.integers("unit_size_range");
    least_ = range.front();
    most_ = range.back();
    if (least_ > most_)
      raise_invalid_argument(kGrid, "unit_size_range must be (smallest, largest)");
  }

 private:
  Result<std::vector<Window>> holes(Size picture, Draws& draws) const override {
    const int longest = std::max({picture.height, picture.width, 2});
    int unit = std::max(2, std::min(picture.height, picture.width) / 10);
    if (most_ > 0) {
      unit = static_cast<int>(std::min<int64_t>(least_ + draws.below(most_ - least_ + 1), longest));
    }
    const int hole = std::clamp(static_cast<int>(unit * ratio_ + 0.5), 1, unit - 1);
    const int up = random_offset_ ? static_cast<int>(draws.below(unit)) : 0;
    const int aside = random_offset_ ? static_cast<int>(draws.below(unit)) : 0;
    const int64_t rows = (picture.height + up + unit - 1) / unit;
    const int64_t columns = (picture.width + aside + unit - 1) / unit;
    if (rows * columns > kMaxHoles) {
      return Error{.code = &kTooManyHoles,
                   .what = "[GridDropout] " + std::to_string(rows) + " x " +
                           std::to_string(columns) + " holes in an image of " +
                           std::to_string(picture.height) + " x " + std::to_string(picture.width) +
                           " (height x width)",
                   .hint = "use a larger unit_size_range, or put a Resize before it"};
    }
    std::vector<Window> out;
    for (int top = -up; top < picture.height; top += unit) {
      for (int left = -aside; left < picture.width; left += unit) {
        const int y = std::max(top, 0), x = std::max(left, 0);
        out.push_back({x, y, std::min(left + hole, picture.width) - x,
                       std::min(top + hole, picture.height) - y});
      }
    }
    return out;
  }

  const double ratio_;
  const bool random_offset_;
  int64_t least_ = 0, most_ = 0;  // 0: a tenth of the picture
};

const OpRecord kGridDropout{
    .name = "GridDropout",
    .doc =
        "Sets the squares of a regular grid to one value, with probability p.\n\n"
        "Images, (C, H, W), any dtype; shape and dtype are unchanged, and so are masks unless "
        "fill_mask is given. The grid has square cells, each with a square hole, and begins at "
        "a random position. It is cheapest as the last transform; crops and flips may follow it.",
    .page = {.section = "Erasing transforms",
             .step = "T.GridDropout(unit_size_range=(24, 32), fill=90, p=1.0)"},
    .params =
        {{.name = "ratio",
          .type = ParamType::kFloat,
          .doc = "Edge of a hole, as a fraction of the cell's edge; each cell has at least one "
                 "pixel inside the hole and one outside.",
          .fallback = 0.5,
          .minimum = 0,
          .maximum = 1},
         {.name = "random_offset",
          .type = ParamType::kBool,
          .doc = "Whether the grid begins at a random position within a cell; otherwise at the "
                 "image's corner.",
          .fallback = true},
         {.name = "unit_size_range",
          .type = ParamType::kInts,
          .doc = "Smallest and largest edge of a cell in pixels, both included; None: a tenth "
                 "of the image's shorter edge.",
          .minimum = 2,
          .maximum = 1 << 16,
          .min_count = 1,
          .max_count = 2},
         dropout_fill_param(),
         dropout_mask_param(),
         dropout_chance_param()},
    .oracle = "the definition of GridMask (Chen et al., 2020), without rotation of the grid",
    .example = {{"unit_size_range", std::vector<int64_t>{3, 6}},
                {"fill", int64_t{9}},
                {"fill_mask", 1.0},
                {"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<GridDropout>(arguments);
    }};
const Register<OpRecord> registered_grid_dropout(kGridDropout);

}  // namespace
}  // namespace headrace
