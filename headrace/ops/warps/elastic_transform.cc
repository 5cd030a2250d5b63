// SPDX-License-Identifier: Apache-2.0
// ElasticTransform: takes each pixel from a nearby position, as if the picture were seen through
// water.
#include <algorithm>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/image/gaussian.h"
#include "headrace/kernels/filters/filter_rows.h"
#include "headrace/kernels/noise_rows.h"
#include "headrace/ops/warps/warp_op.h"

namespace headrace {
namespace {

constexpr size_t kFieldBytes = 4 * sizeof(float);  // per pixel
constexpr int kFieldPadding = 16;                  // elements that kernels touch past a row

// Reflects at the ends without repeating the edge, as often as needed.
int reflected(int at, int size) {
  if (size == 1) return 0;
  const int period = 2 * (size - 1), in_period = ((at % period) + period) % period;
  return std::min(in_period, period - in_period);
}

// Random numbers from -1 to 1, blurred along both axes, in per-thread memory.
class RandomField {
 public:
  RandomField(Size size, uint64_t key, FieldMemory& memory)
      : size_(size),
        stride_((ptrdiff_t{size.width} + kFieldPadding - 1) / kFieldPadding * kFieldPadding),
        numbers_(floats(memory.numbers(0))),
        half_(floats(memory.numbers(1))) {
    uniform_columns(key, size.width, size.height, stride_, numbers_);
  }

  // `taps`: kernel size; torchvision's for either field. Multiplies by `scale` in the last pass,
  // into `out`.
  void blur(int taps, double sigma_x, double sigma_y, float scale, float* out) {
    if (taps) across(gaussian_taps(taps, sigma_y));
    std::vector<float> last = taps ? gaussian_taps(taps, sigma_x) : std::vector<float>{1.0f};
    for (float& weight : last) weight *= scale;
    along(taps ? half_ : numbers_, last, out);
  }

 private:
  float* floats(Buffer& memory) {
    memory.resize(size_t(stride_) * size_t(size_.height) * sizeof(float));
    return reinterpret_cast<float*>(memory.data());
  }

  void across(const std::vector<float>& weights) {
    const int taps = static_cast<int>(weights.size()), half = taps / 2;
    std::vector<const float*> rows;
    for (int y = -half; y < size_.height + half; ++y) {
      rows.push_back(numbers_ + reflected(y, size_.height) * stride_);
    }
    for (int y = 0; y < size_.height; ++y) {
      convolve_across(rows.data() + y, weights.data(), taps, size_.width, half_ + y * stride_);
    }
  }

  // Rows are written past their end; the next row then overwrites that.
  void along(const float* from, const std::vector<float>& weights, float* out) {
    const int half = static_cast<int>(weights.size()) / 2, width = size_.width;
    std::vector<float> padded(size_t(width) + weights.size() + kFieldPadding);
    for (int y = 0; y < size_.height; ++y, from += stride_, out += width) {
      std::copy_n(from, width, padded.data() + half);
      if (half < width) {  // same as reflected(), without its divisions
        std::reverse_copy(from + 1, from + 1 + half, padded.data());
        std::reverse_copy(from + width - 1 - half, from + width - 1, padded.data() + half + width);
      } else {
        for (int x = 1; x <= half; ++x) {
          padded[size_t(half - x)] = from[reflected(-x, width)];
          padded[size_t(half + width - 1 + x)] = from[reflected(width - 1 + x, width)];
        }
      }
      convolve_along(padded.data(), weights.data(), static_cast<int>(weights.size()), width, out);
    }
  }

  const Size size_;
  const ptrdiff_t stride_;
  float *const numbers_, *const half_;
};

// torchvision's kernel for a sigma: up to 4 sigma in each direction, with an odd number of taps.
int taps_of(double sigma) { return sigma > 0 ? static_cast<int>(8 * sigma + 1) | 1 : 0; }

class ElasticTransform final : public WarpOp {
 public:
  explicit ElasticTransform(const Arguments& arguments)
      : WarpOp("ElasticTransform", arguments),
        alpha_{arguments.numbers("alpha").front(), arguments.numbers("alpha").back()},
        sigma_{arguments.numbers("sigma").front(), arguments.numbers("sigma").back()} {
    if ((sigma_[0] > 0) != (sigma_[1] > 0)) {
      raise_invalid_argument(name(), "sigma must be positive along both axes, or 0 along both");
    }
  }

  // Two fields, and a third during the transposition.
  size_t scratch_per_pixel() const override { return WarpOp::scratch_per_pixel() + kFieldBytes; }

  Result<void> apply(OpContext& context) const override {
    // One key per axis; pictures of the same size share their field.
    const std::array<uint64_t, 2> keys{word(context.draws), word(context.draws)};
    if (Result<void> made = pixels_first(context); !made) return made;
    std::shared_ptr<const WarpField> field;  // shared with each picture that it warps
    return follow_by_size(context, [&](Size canvas) -> Result<Geometry> {
      if (Result<void> fits = check_size(canvas); !fits) return std::move(fits.error());
      if (!field || field->size != canvas) {
        field = field_of(keys, canvas, context.renderer.fields());
      }
      return geometry_of({.map = Warp::Map::kField, .style = style(), .to = canvas, .field = field},
                         canvas);
    });
  }

 private:
  static uint64_t word(Draws& draws) {
    const uint64_t high = draws.bits();
    return high << 32 | draws.bits();
  }

  std::shared_ptr<const WarpField> field_of(const std::array<uint64_t, 2>& keys, Size canvas,
                                            FieldMemory& memory) const {
    const std::shared_ptr<WarpField> field = memory.field_of(canvas);
    const auto make = [&](size_t axis, int extent, float* out) {
      const auto scale = static_cast<float>(alpha_[axis] / extent);
      RandomField(canvas, keys[axis], memory)
          .blur(taps_of(sigma_[axis]), sigma_[0], sigma_[1], scale, out);
    };
    make(0, canvas.width, field->x.data());
    make(1, canvas.height, field->y.data());
    return field;
  }

  const std::array<double, 2> alpha_, sigma_;
};

const OpRecord kElasticTransform{
    .name = "ElasticTransform",
    .doc =
        "Moves each pixel of a record's images by a smooth random displacement (elastic "
        "deformation), as if seen through water.\n\n"
        "Images and masks, (C, H, W), uint8; shape and dtype are unchanged. Earlier transforms are "
        "rendered first, which adds a pass over the image. Boxes and points are moved opposite to "
        "the displacement at their position, torchvision's approximation, which gets worse with "
        "larger alpha.",
    .page = {.section = "Warping transforms", .step = "T.ElasticTransform(120.0, 6.0)"},
    .params = with_field_params(
        {{.name = "alpha",
          .type = ParamType::kFloats,
          .doc = "Magnitude of displacements: one number, or (along x, along y).",
          .fallback = 50.0,
          .minimum = -1e6,
          .maximum = 1e6,
          .min_count = 1,
          .max_count = 2},
         {.name = "sigma",
          .type = ParamType::kFloats,
          .doc = "Smoothness of displacements, in pixels: one number, or (along x, along y).",
          .fallback = 5.0,
          .minimum = 0,
          .maximum = 1000,
          .min_count = 1,
          .max_count = 2}}),
    .oracle =
        "torchvision v2's elastic on tensors and on Pillow images, bit for bit for the same "
        "displacements; these in distribution",
    .example = {{"alpha", 20.0}, {"sigma", 3.0}, {"fill", int64_t{9}}, {"mask_fill", int64_t{1}}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<ElasticTransform>(arguments);
    }};
const Register<OpRecord> registered_elastic_transform(kElasticTransform);

}  // namespace
}  // namespace headrace
