// SPDX-License-Identifier: Apache-2.0
// MotionBlur: replaces each sample with the mean along a line, as if the camera moved.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <set>
#include <utility>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/kernels/filters/filter_rows.h"
#include "headrace/ops/color/color_steps.h"
#include "headrace/ops/filters/blur_limit.h"
#include "headrace/ops/filters/padded_rows.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/pixel_op.h"

namespace headrace {
namespace {

constexpr std::string_view kMotion = "MotionBlur";

struct Line {
  double angle = 0;              // degrees
  double direction = 0;          // -1: backward only, 1: forward only
  double aside = 0, across = 0;  // shift of its center, -1 to 1 in units of a quarter of the edge
};

// The points of a line in a square of `size`, as (row, column), each once: Albumentations' kernel.
std::set<std::pair<int, int>> points_of(const Line& line, int size) {
  const int half = size / 2;
  const double angle = line.angle * std::numbers::pi / 180;
  const double first = line.direction > 0 ? -half * (1 - line.direction) : -half;
  const double last = line.direction < 0 ? half * (1 + line.direction) : half;
  std::set<std::pair<int, int>> points;
  for (int i = 0; i < size; ++i) {
    const double at = first + (last - first) / (size - 1) * i;
    const double x = half + std::cos(angle) * at + line.aside * half / 2;
    const double y = half + std::sin(angle) * at + line.across * half / 2;
    const auto place = [&](double v) {
      return static_cast<int>(std::clamp(std::nearbyint(v), 0.0, size - 1.0));
    };
    points.insert({place(y), place(x)});
  }
  return points;
}

void blur_along(const std::set<std::pair<int, int>>& points, int size, const Picture& in,
                Picture& out) {
  const size_t width = size_t(in.width);
  PaddedRows around(in, size, Padding::kReflect);
  std::vector<const uint8_t*> rows(points.size());
  std::vector<uint8_t> made(width + 64);
  for (int c = 0; c < in.channels; ++c) {
    for (int y = 0; y < in.height; ++y) {
      const uint8_t* const* const from = around.around(c, y);
      std::transform(points.begin(), points.end(), rows.begin(),
                     [&](const auto& point) { return from[point.first] + point.second; });
      mean_row(rows.data(), static_cast<int>(rows.size()), in.width, made.data());
      std::copy_n(made.data(), width, out.plane(c) + width * size_t(y));
    }
  }
}

class MotionBlur final : public WholeImageOp {
 public:
  MotionBlur(BlurLimit limit, const Arguments& arguments)
      : WholeImageOp(kMotion),
        limit_(limit),
        angle_(arguments.numbers("angle_range")),
        direction_(arguments.numbers("direction_range")),
        shifted_(arguments.flag("allow_shifted")),
        p_(arguments.number("p")) {
    if (angle_.front() > angle_.back() || direction_.front() > direction_.back()) {
      raise_invalid_argument(kMotion,
                             "angle_range and direction_range must be (smallest, largest)");
    }
  }

  Result<void> apply(OpContext& context) const override {
    Draws& draws = context.draws;
    if (!draws.coin(p_)) return {};
    const int size = limit_.draw(draws);
    Line line{.angle = draws.uniform(angle_.front(), angle_.back()),
              .direction = draws.uniform(direction_.front(), direction_.back())};
    if (shifted_) line.aside = draws.uniform(-1, 1);
    if (shifted_) line.across = draws.uniform(-1, 1);
    const std::set<std::pair<int, int>> points = points_of(line, size);
    return transform_images(context, [&](const Picture& in, Picture& out) -> Result<void> {
      blur_along(points, size, in, out);
      return {};
    });
  }

 private:
  void plan_image(FieldState& image) const override { plan_step(table_step({}), image); }
  const BlurLimit limit_;
  const std::vector<double> angle_, direction_;
  const bool shifted_;
  const double p_;
};

const OpRecord kMotionBlur{
    .name = "MotionBlur",
    .doc =
        "Blurs an image along a line of random length and angle, with probability p.\n\n"
        "Images of one or three channels, (C, H, W), uint8; shape and dtype are unchanged, and "
        "so are masks. Each sample becomes the mean of those on the line, rounded; borders are "
        "mirrored. Earlier transforms are rendered first, which adds a pass over the image.",
    .page = {.section = "Sharpness, blur and noise", .step = "T.MotionBlur((9, 15), p=1.0)"},
    .params = {blur_limit_param(),
               {.name = "allow_shifted",
                .type = ParamType::kBool,
                .doc =
                    "Whether the middle of the line may be shifted from the pixel's center, by up "
                    "to a quarter of the kernel size.",
                .fallback = true},
               {.name = "angle_range",
                .type = ParamType::kFloats,
                .doc = "Smallest and largest angle in degrees, or one fixed angle.",
                .fallback = std::vector<double>{0, 360},
                .minimum = -360,
                .maximum = 360,
                .min_count = 1,
                .max_count = 2},
               {.name = "direction_range",
                .type = ParamType::kFloats,
                .doc = "Range of the line's direction: at -1 it ends at the pixel, at 1 it starts "
                       "there, at 0 it is centered.",
                .fallback = std::vector<double>{-1, 1},
                .minimum = -1,
                .maximum = 1,
                .min_count = 1,
                .max_count = 2},
               probability_param("Probability of blurring a record's images.")},
    .oracle =
        "Albumentations' MotionBlur: the same lines; exact means, ties rounded to even as in "
        "OpenCV, whose float32 sums may be off by 1 at a tie",
    .example = {{"blur_limit", int64_t{7}}, {"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<MotionBlur>(BlurLimit(kMotion, arguments), arguments);
    }};
const Register<OpRecord> registered_motion_blur(kMotionBlur);

}  // namespace
}  // namespace headrace
