// SPDX-License-Identifier: Apache-2.0
// CoarseDropout: sets several random rectangles to one value.
#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/ops/noise/dropout.h"

namespace headrace {
namespace {

constexpr std::string_view kCoarse = "CoarseDropout";

// Smallest and largest edge of a hole: pixels, or fractions of the picture's if the largest is
// below 1.
struct HoleEdge {
  HoleEdge(const Arguments& arguments, std::string_view name)
      : least(arguments.numbers(name).front()), most(arguments.numbers(name).back()) {
    const bool whole = least == static_cast<int>(least) && most == static_cast<int>(most);
    if (least > most || (most >= 1 && !whole)) {
      raise_invalid_argument(
          kCoarse,
          std::string(name) +
              " must be (smallest, largest): pixels, or fractions of the image's edge below 1");
    }
  }
  int draw(int extent, Draws& draws) const {
    if (most < 1) return static_cast<int>(extent * draws.uniform(least, most));
    const int low = std::min(static_cast<int>(least), extent);
    const int high = std::min(static_cast<int>(most), extent);
    return low + static_cast<int>(draws.below(high - low + 1));
  }

  const double least, most;
};

class CoarseDropout final : public DropoutOp {
 public:
  explicit CoarseDropout(const Arguments& arguments)
      : DropoutOp(kCoarse, arguments),
        fewest_(arguments.integers("num_holes_range").front()),
        most_(arguments.integers("num_holes_range").back()),
        height_(arguments, "hole_height_range"),
        width_(arguments, "hole_width_range") {
    if (fewest_ > most_) raise_invalid_argument(kCoarse, "num_holes_range must be (fewest, most)");
  }

 private:
  Result<std::vector<Window>> holes(Size picture, Draws& draws) const override {
    std::vector<Window> out;
    for (int64_t left = fewest_ + draws.below(most_ - fewest_ + 1); left > 0; --left) {
      const int height = height_.draw(picture.height, draws);
      const int width = width_.draw(picture.width, draws);
      const int y = static_cast<int>(draws.below(picture.height - height + 1));
      const int x = static_cast<int>(draws.below(picture.width - width + 1));
      out.push_back({x, y, width, height});
    }
    return out;
  }

  const int64_t fewest_, most_;
  const HoleEdge height_, width_;
};

Param hole_param(std::string_view name, std::string_view doc) {
  return {.name = name,
          .type = ParamType::kFloats,
          .doc = doc,
          .fallback = std::vector<double>{0.1, 0.2},
          .minimum = 0,
          .maximum = 1 << 16,
          .min_count = 1,
          .max_count = 2};
}

const OpRecord kCoarseDropout{
    .name = "CoarseDropout",
    .doc =
        "Sets several random rectangles to one value, with probability p.\n\n"
        "Images, (C, H, W), any dtype; shape and dtype are unchanged, and so are masks unless "
        "fill_mask is given. Holes may overlap. It is cheapest as the last transform; crops and "
        "flips may follow it.",
    .page = {.section = "Erasing transforms",
             .step = "T.CoarseDropout((4, 8), (12, 30), (12, 30), fill=90, p=1.0)"},
    .params = {{.name = "num_holes_range",
                .type = ParamType::kInts,
                .doc = "Smallest and largest number of holes, or one fixed number.",
                .fallback = std::vector<int64_t>{1, 2},
                .minimum = 1,
                .maximum = 4096,
                .min_count = 1,
                .max_count = 2},
               hole_param("hole_height_range",
                          "Smallest and largest height of a hole, both included: pixels; or, below "
                          "1, "
                          "fractions of the image's height."),
               hole_param("hole_width_range", "The same for its width."),
               dropout_fill_param(),
               dropout_mask_param(),
               dropout_chance_param()},
    .oracle = "Albumentations' CoarseDropout, in distribution",
    .example = {{"num_holes_range", std::vector<int64_t>{2, 5}},
                {"hole_height_range", std::vector<double>{0.2, 0.4}},
                {"hole_width_range", std::vector<double>{2, 3}},
                {"fill", int64_t{9}},
                {"fill_mask", 1.0},
                {"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<CoarseDropout>(arguments);
    }};
const Register<OpRecord> registered_coarse_dropout(kCoarseDropout);

}  // namespace
}  // namespace headrace
