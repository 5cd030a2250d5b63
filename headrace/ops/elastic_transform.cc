// SPDX-License-Identifier: Apache-2.0
// ElasticTransform: each pixel from a place nearby, as if the picture were seen through water.
#include <algorithm>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/image/gaussian.h"
#include "headrace/kernels/convolve_rows.h"
#include "headrace/kernels/noise_rows.h"
#include "headrace/ops/warp_op.h"

namespace headrace {
namespace {

constexpr size_t kFieldBytes = 4 * sizeof(float);  // of a pixel
constexpr size_t kBeyondField = 16;                // elements that kernels touch past a row

// Mirrored at the ends without repeating them, as often as it takes.
int reflected(int at, int size) {
  if (size == 1) return 0;
  const int period = 2 * (size - 1), in_period = ((at % period) + period) % period;
  return std::min(in_period, period - in_period);
}

// Rows of random numbers from -1 to 1, blurred along both axes: `size` of them, dense, and more.
class RandomField {
 public:
  RandomField(Size size, uint64_t key) : size_(size) {
    // The rows are columns until they are blurred and transposed: so both passes go along rows.
    std::vector<uint32_t> bits(size_t(noise_room(size.height)));
    values_.resize(area());
    for (int x = 0; x < size.width; ++x) {
      random_row(key, static_cast<uint32_t>(x), size.height, bits.data());
      std::transform(
          bits.data(), bits.data() + size.height, row(x, size.height),
          [](uint32_t word) { return float(static_cast<int32_t>(word >> 8)) * 0x1p-23f - 1.0f; });
    }
  }

  // `taps`: of the kernel; torchvision's for either field. Scales by `scale` at last.
  std::vector<float> blurred(int taps, double sigma_x, double sigma_y, float scale) && {
    if (taps) along(gaussian_taps(taps, sigma_y), size_.width, size_.height);
    transpose();
    std::vector<float> last = taps ? gaussian_taps(taps, sigma_x) : std::vector<float>{1.0f};
    for (float& weight : last) weight *= scale;
    along(last, size_.height, size_.width);
    return std::move(values_);
  }

 private:
  size_t area() const { return size_t(size_.width) * size_t(size_.height) + kBeyondField; }
  float* row(int at, int width) { return values_.data() + size_t(at) * size_t(width); }

  void along(const std::vector<float>& weights, int rows, int width) {
    const int half = static_cast<int>(weights.size()) / 2;
    std::vector<float> padded(size_t(width) + weights.size() + kBeyondField), out(padded.size());
    for (int y = 0; y < rows; ++y) {
      float* const values = row(y, width);
      std::copy_n(values, width, padded.data() + half);
      if (half < width) {  // as reflected() has it, without its divisions
        std::reverse_copy(values + 1, values + 1 + half, padded.data());
        std::reverse_copy(values + width - 1 - half, values + width - 1,
                          padded.data() + half + width);
      } else {
        for (int x = 1; x <= half; ++x) {
          padded[size_t(half - x)] = values[reflected(-x, width)];
          padded[size_t(half + width - 1 + x)] = values[reflected(width - 1 + x, width)];
        }
      }
      convolve_along(padded.data(), weights.data(), static_cast<int>(weights.size()), width,
                     out.data());
      std::copy_n(out.data(), width, values);
    }
  }

  void transpose() {
    constexpr int kTile = 16;
    std::vector<float> out(area());
    for (int top = 0; top < size_.height; top += kTile) {
      for (int x = 0; x < size_.width; ++x) {
        const float* const column = row(x, size_.height);
        for (int y = top; y < std::min(top + kTile, size_.height); ++y) {
          out[size_t(y) * size_t(size_.width) + size_t(x)] = column[y];
        }
      }
    }
    values_ = std::move(out);
  }

  const Size size_;
  std::vector<float> values_;
};

// torchvision's kernel for a sigma: up to 4 of them each way, of an odd number of taps.
int taps_of(double sigma) { return sigma > 0 ? static_cast<int>(8 * sigma + 1) | 1 : 0; }

class ElasticTransform final : public WarpOp {
 public:
  explicit ElasticTransform(const Arguments& arguments)
      : WarpOp("ElasticTransform", arguments),
        alpha_{arguments.numbers("alpha").front(), arguments.numbers("alpha").back()},
        sigma_{arguments.numbers("sigma").front(), arguments.numbers("sigma").back()} {
    if ((sigma_[0] > 0) != (sigma_[1] > 0)) {
      raise_misfit(name(), "sigma must be positive along both axes, or 0 along both");
    }
  }

  // Two fields, and one more while it is transposed.
  size_t scratch_per_pixel() const override { return WarpOp::scratch_per_pixel() + kFieldBytes; }

  Result<void> apply(OpContext& context) const override {
    // One key for each axis; pictures of a size share their field.
    const std::array<uint64_t, 2> keys{word(context.draws), word(context.draws)};
    std::shared_ptr<const WarpField> field;  // shared: with each picture that it bends
    return follow_by_size(context, [&](Size canvas) -> Result<Geometry> {
      if (Result<void> fits = check_size(canvas); !fits) return std::move(fits.error());
      if (!field || field->size != canvas) {
        field = std::make_shared<const WarpField>(field_of(keys, canvas));
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

  WarpField field_of(const std::array<uint64_t, 2>& keys, Size canvas) const {
    const auto along = [&](size_t axis, int extent) {
      const auto scale = static_cast<float>(alpha_[axis] / extent);
      return RandomField(canvas, keys[axis])
          .blurred(taps_of(sigma_[axis]), sigma_[0], sigma_[1], scale);
    };
    return {.size = canvas, .x = along(0, canvas.width), .y = along(1, canvas.height)};
  }

  const std::array<double, 2> alpha_, sigma_;
};

const OpRecord kElasticTransform{
    .name = "ElasticTransform",
    .doc =
        "Takes each pixel of a record's pictures from a place nearby, as if they were seen through "
        "water.\n\n"
        "Images and masks, (C, H, W), uint8; shape and dtype stay. Pixels of what comes before it "
        "are computed first, and a second pass begins. Boxes and points are moved against the "
        "displacement that there is where they are, which is torchvision's approximation: the "
        "larger alpha, the worse.",
    .params = with_warp_params(
        {{.name = "alpha",
          .type = ParamType::kFloats,
          .doc = "How far pixels come: one number, or (along x, along y).",
          .fallback = 50.0,
          .minimum = -1e6,
          .maximum = 1e6,
          .min_count = 1,
          .max_count = 2},
         {.name = "sigma",
          .type = ParamType::kFloats,
          .doc = "How smooth that is, in pixels: one number, or (along x, along y).",
          .fallback = 5.0,
          .minimum = 0,
          .maximum = 1000,
          .min_count = 1,
          .max_count = 2}},
        "bilinear"),
    .oracle =
        "torchvision v2's elastic on tensors and on Pillow's pictures, bit for bit for the same "
        "displacements; these in distribution",
    .example = {{"alpha", 20.0}, {"sigma", 3.0}, {"fill", int64_t{9}}, {"mask_fill", int64_t{1}}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<ElasticTransform>(arguments);
    }};
const Register<OpRecord> registered_elastic_transform(kElasticTransform);

}  // namespace
}  // namespace headrace
