// SPDX-License-Identifier: Apache-2.0
// GaussianNoise: normal noise, independent for each sample.
#include <algorithm>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/kernels/noise_rows.h"
#include "headrace/ops/color/color_steps.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/pixel_op.h"

namespace headrace {
namespace {

class GaussianNoise final : public WholeImageOp {
 public:
  GaussianNoise(double mean, double sigma, bool clip)
      : WholeImageOp("GaussianNoise"), mean_(mean), sigma_(sigma), clip_(clip) {}

  Result<void> apply(OpContext& context) const override {
    return transform_images(context, [&](const Picture& in, Picture& out) -> Result<void> {
      const uint64_t key = context.draws.key();
      if (in.dtype == DType::kUInt8) {
        add_to_bytes(in, key, out);
      } else {
        add_to_floats(in, key, out);
      }
      return {};
    });
  }

 private:
  void plan_image(FieldState& image) const override {
    if (image.dtype != DType::kFloat32) plan_step(table_step({}), image);
  }

  void add_to_bytes(const Picture& in, uint64_t key, Picture& out) const {
    const ByteNoise how{static_cast<float>(mean_ * 255), static_cast<float>(sigma_ * 255), clip_};
    const size_t width = size_t(in.width), room = width + kNoiseTile;
    std::vector<float> noise(size_t(noise_room(in.width)));
    std::vector<uint8_t> from(room), to(room);
    for (int row = 0; row < in.channels * in.height; ++row) {
      normal_row(key, static_cast<uint32_t>(row), in.width, noise.data());
      std::copy_n(in.pixels.data() + size_t(row) * width, width, from.data());
      add_noise_row(from.data(), noise.data(), in.width, how, to.data());
      std::copy_n(to.data(), width, out.pixels.data() + size_t(row) * width);
    }
  }

  void add_to_floats(const Picture& in, uint64_t key, Picture& out) const {
    const auto mean = static_cast<float>(mean_), sigma = static_cast<float>(sigma_);
    const auto* from = reinterpret_cast<const float*>(in.pixels.data());
    auto* to = reinterpret_cast<float*>(out.pixels.data());
    std::vector<float> noise(size_t(noise_room(in.width)));
    for (int row = 0; row < in.channels * in.height; ++row) {
      normal_row(key, static_cast<uint32_t>(row), in.width, noise.data());
      for (int x = 0; x < in.width; ++x) {
        const float value = *from++ + (mean + noise[size_t(x)] * sigma);
        *to++ = clip_ ? std::clamp(value, 0.0f, 1.0f) : value;
      }
    }
  }

  const double mean_, sigma_;
  const bool clip_;
};

const OpRecord kGaussianNoise{
    .name = "GaussianNoise",
    .doc =
        "Adds Gaussian noise to an image, independently for each sample.\n\n"
        "Images of one or three channels, (C, H, W), uint8, or of any number, float32; shape "
        "and dtype are unchanged, and so are masks. Earlier transforms are rendered first, "
        "which adds a pass over the image. The noise is a function of seed, epoch, the record's "
        "position and the pixel.",
    .page = {.section = "Sharpness, blur and noise", .step = "T.GaussianNoise(0.0, 0.2)"},
    .params = {{.name = "mean",
                .type = ParamType::kFloat,
                .doc = "Mean of the noise, where white is 1 (255 for uint8).",
                .fallback = 0.0,
                .minimum = -100,
                .maximum = 100},
               {.name = "sigma",
                .type = ParamType::kFloat,
                .doc = "Standard deviation of the noise, where white is 1.",
                .fallback = 0.1,
                .minimum = 0,
                .maximum = 100},
               {.name = "clip",
                .type = ParamType::kBool,
                .doc =
                    "Whether results are clipped to 0 to 1 (0 to 255 for uint8). Otherwise uint8 "
                    "wraps around modulo 256, as in torchvision.",
                .fallback = true}},
    .oracle = "torchvision v2's gaussian_noise on tensors, in distribution",
    .example = {{"mean", 0.05}, {"sigma", 0.2}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<GaussianNoise>(arguments.number("mean"), arguments.number("sigma"),
                                             arguments.flag("clip"));
    }};
const Register<OpRecord> registered_gaussian_noise(kGaussianNoise);

}  // namespace
}  // namespace headrace
