// SPDX-License-Identifier: Apache-2.0
// PCALighting: changes light and tint along the principal directions of ImageNet's colors, as in
// AlexNet's training.
#include <algorithm>
#include <array>
#include <cmath>

#include "headrace/base/registry.h"
#include "headrace/kernels/noise_rows.h"
#include "headrace/ops/color/color_steps.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

// ImageNet's color statistics for the range 0 to 1, as published by fb.resnet.torch: standard
// deviations along the principal directions, and the directions as columns.
constexpr std::array<float, 3> kDeviations{0.2175f, 0.0188f, 0.0045f};
constexpr float kDirections[3][3] = {
    {-0.5675f, 0.7192f, 0.4009f}, {-0.5808f, -0.0045f, -0.8140f}, {-0.5836f, -0.6948f, 0.4203f}};

int three_channels(const PixelStep&, int in) { return in == 3 ? 3 : 0; }

void light_bytes(const PixelStep& step, const uint8_t* const in[], int channels, int count,
                 uint8_t* const out[]) {
  for (int c = 0; c < channels; ++c) {
    const float add = step.values[size_t(c)] * 255;
    for (int i = 0; i < count; ++i) {
      const float sum = static_cast<float>(in[c][i]) + add;
      out[c][i] = static_cast<uint8_t>(std::clamp(std::nearbyint(sum), 0.0f, 255.0f));
    }
  }
}

void light_floats(const PixelStep& step, const float* const in[], int channels, int count,
                  float* const out[]) {
  for (int c = 0; c < channels; ++c) {
    for (int i = 0; i < count; ++i) out[c][i] = in[c][i] + step.values[size_t(c)];
  }
}

constexpr PixelFunction kLighting{three_channels, light_bytes, light_floats};

// Bytes use a table, with the same values as light_bytes computes.
PixelStep lighting_step(const std::array<float, 3>& add, DType dtype) {
  if (dtype != DType::kUInt8) return {&kLighting, {add[0], add[1], add[2]}};
  return table_step(color_table([&](int c, int value) {
    const float sum = static_cast<float>(value) + add[size_t(c)] * 255;
    return std::clamp(std::nearbyint(sum), 0.0f, 255.0f);
  }));
}

class PCALighting final : public PixelOp {
 public:
  explicit PCALighting(double deviation) : PixelOp("PCALighting"), deviation_(deviation) {}
  DevicePart device_part() const override { return DevicePart::kTable; }

  Result<void> apply(OpContext& context) const override {
    std::array<float, kNoiseTile> alpha;
    normal_row(context.draws.key(), 0, 3, alpha.data());
    std::array<float, 3> add{};
    for (size_t c = 0; c < 3; ++c) {
      for (size_t i = 0; i < 3; ++i) {
        add[c] += kDirections[c][i] * (alpha[i] * static_cast<float>(deviation_)) * kDeviations[i];
      }
    }
    for (const int field : context.fields) {
      const DType dtype = context.record.fields[field].picture.dtype();
      if (Result<void> done = compute(context, field, lighting_step(add, dtype)); !done)
        return done;
    }
    return {};
  }

 private:
  void plan_image(FieldState& image) const override { plan_step({&kLighting}, image); }
  const double deviation_;
};

const OpRecord kPCALighting{
    .name = "PCALighting",
    .doc =
        "Adds a random color to an image, along the main directions of ImageNet's colors.\n\n"
        "Images of three channels, (3, H, W), uint8 or float32; shape and dtype are unchanged, and "
        "so are masks. For each record, each eigenvector is weighted by a normal random number "
        "times the square root of its eigenvalue (0.2175, 0.0188 and 0.0045, where white is 1). "
        "uint8 values are rounded and clipped, floats are not.",
    .page = {.section = "Color transforms", .step = "T.PCALighting(0.5)"},
    .params = {{.name = "alphastd",
                .type = ParamType::kFloat,
                .doc = "Standard deviation of the three random eigenvector weights.",
                .fallback = 0.1,
                .minimum = 0,
                .maximum = 100}},
    .oracle = "Lighting of fb.resnet.torch (Krizhevsky et al., 2012), in distribution",
    .example = {{"alphastd", 0.5}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<PCALighting>(arguments.number("alphastd"));
    }};
const Register<OpRecord> registered_pca_lighting(kPCALighting);

}  // namespace
}  // namespace headrace
