// SPDX-License-Identifier: Apache-2.0
// GridDistortion: lays a grid over the picture and makes its columns and rows wider or narrower.
#include <algorithm>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/ops/warps/warp_op.h"

namespace headrace {
namespace {

constexpr std::string_view kGridDistortion = "GridDistortion";
constexpr size_t kGridPadding = 16;  // numbers that kernels touch past the end

// Where the edges of the output's equal cells come from, in a source of this extent.
std::vector<double> lines_of(const std::vector<double>& factors, int extent, bool normalized) {
  std::vector<double> lines{0};
  for (const double factor : factors) lines.push_back(lines.back() + factor);
  const double whole = normalized ? lines.back() : double(factors.size());
  for (double& line : lines) line *= extent / whole;
  if (normalized) lines.back() = extent;
  return lines;
}

// The displacement of each pixel's center along an axis, in the format of a field.
std::vector<float> displacements_of(const std::vector<double>& lines, int extent) {
  const auto cells = static_cast<double>(lines.size() - 1);
  std::vector<float> out(static_cast<size_t>(extent));
  for (int at = 0; at < extent; ++at) {
    const double place = (at + 0.5) * cells / extent;
    const auto cell = std::min(static_cast<size_t>(place), lines.size() - 2);
    const double from = lines[cell] + (place - double(cell)) * (lines[cell + 1] - lines[cell]);
    out[size_t(at)] = static_cast<float>(2 * from / extent - 1 - identity_at<double>(at, extent));
  }
  return out;
}

class GridDistortion final : public WarpOp {
 public:
  explicit GridDistortion(const Arguments& arguments)
      : WarpOp(kGridDistortion, arguments),
        steps_(static_cast<size_t>(arguments.integer("num_steps"))),
        limits_(angles_from(kGridDistortion, "distort_limit", arguments.numbers("distort_limit"))),
        normalized_(arguments.flag("normalized")) {}

  Result<void> apply(OpContext& context) const override {
    std::array<std::vector<double>, 2> factors;
    for (std::vector<double>& each : factors) {
      for (size_t i = 0; i < steps_; ++i) {
        each.push_back(1 + context.draws.uniform(limits_[0], limits_[1]));
      }
    }
    return follow_by_size(context, [&](Size canvas) -> Result<Geometry> {
      if (Result<void> fits = check_size(canvas); !fits) return std::move(fits.error());
      return geometry_of({.map = Warp::Map::kField,
                          .style = style(),
                          .to = canvas,
                          .field = field_of(factors, canvas)},
                         canvas);
    });
  }

 private:
  // shared with the pictures that it will warp, until they are rendered
  std::shared_ptr<const WarpField> field_of(const std::array<std::vector<double>, 2>& factors,
                                            Size canvas) const {
    auto field = std::make_shared<WarpField>(WarpField{.size = canvas, .x = {}, .y = {}});
    field->lines = {lines_of(factors[0], canvas.width, normalized_),
                    lines_of(factors[1], canvas.height, normalized_)};
    field->x = displacements_of(field->lines[0], canvas.width);
    field->y = displacements_of(field->lines[1], canvas.height);
    field->x.resize(field->x.size() + kGridPadding);
    return field;
  }

  const size_t steps_;
  const std::array<double, 2> limits_;
  const bool normalized_;
};

const OpRecord kGridDistortionRecord{
    .name = kGridDistortion,
    .doc =
        "Stretches and compresses a record's images by the columns and rows of a grid.\n\n"
        "Images and masks, (C, H, W), uint8; shape and dtype are unchanged. Earlier transforms are "
        "rendered first, which adds a pass over the image. Boxes and points follow the grid lines "
        "around them exactly; boxes are clipped at the image's edge.",
    .page = {.section = "Warping transforms", .step = "T.GridDistortion(4, 0.6)"},
    .params = with_field_params(
        {{.name = "num_steps",
          .type = ParamType::kInt,
          .doc = "Cells of the grid along each axis.",
          .fallback = int64_t{5},
          .minimum = 1,
          .maximum = 1000},
         {.name = "distort_limit",
          .type = ParamType::kFloats,
          .doc = "x: each column and row shows 1 + d times its extent, with d drawn from [-x, x]; "
                 "or (smallest, largest) for d.",
          .fallback = 0.3,
          .minimum = -0.99,
          .maximum = 0.99,
          .min_count = 1,
          .max_count = 2},
         {.name = "normalized",
          .type = ParamType::kBool,
          .doc = "Whether the cells are scaled so that the whole image remains visible, from edge "
                 "to edge.",
          .fallback = true}}),
    .oracle =
        "torchvision v2's elastic on tensors for the same displacements, bit for bit; grids as "
        "Albumentations' GridDistortion, in distribution",
    .example = {{"num_steps", int64_t{3}},
                {"distort_limit", 0.5},
                {"fill", int64_t{9}},
                {"mask_fill", int64_t{1}}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<GridDistortion>(arguments);
    }};
const Register<OpRecord> registered_grid_distortion(kGridDistortionRecord);

}  // namespace
}  // namespace headrace
