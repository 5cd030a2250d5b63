// SPDX-License-Identifier: Apache-2.0
// Grayscale: the brightness of each pixel in place of its colour.
#include <algorithm>
#include <cstring>

#include "headrace/base/registry.h"
#include "headrace/kernels/color_rows.h"
#include "headrace/kernels/planar_color.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/pixel_op.h"

namespace headrace {
namespace {

// values[0]: channels that come out, all of them the same. A grey image keeps its values.
int gray_channels(const PixelStep& step, int in) {
  return in == 1 || in == 3 ? static_cast<int>(step.values[0]) : 0;
}

template <class Sample>
void replicate(const PixelStep& step, int count, Sample* const out[]) {
  for (int c = 1; c < static_cast<int>(step.values[0]); ++c) std::copy_n(out[0], count, out[c]);
}

template <void (*gray_from_rgb)(const uint8_t* const rgb[3], int count, uint8_t* gray)>
void gray_bytes(const PixelStep& step, const uint8_t* const in[], int channels, int count,
                uint8_t* const out[]) {
  if (channels == 3) {
    gray_from_rgb(in, count, out[0]);
  } else {
    std::memcpy(out[0], in[0], count);
  }
  replicate(step, count, out);
}

void gray_floats(const PixelStep& step, const float* const in[], int channels, int count,
                 float* const out[]) {
  for (int i = 0; i < count; ++i) {
    out[0][i] = channels == 3 ? luma_of(in[0][i], in[1][i], in[2][i]) : in[0][i];
  }
  replicate(step, count, out);
}

constexpr PixelFunction kTorchvision{gray_channels, gray_bytes<luma_from_rgb_rows>, gray_floats};
constexpr PixelFunction kPillow{gray_channels, gray_bytes<gray_from_rgb_rows>, nullptr};

class Grayscale final : public PixelOp {
 public:
  Grayscale(const PixelFunction& function, int64_t channels)
      : PixelOp("Grayscale"), step_{&function, {static_cast<float>(channels)}} {}

  Result<void> apply(OpContext& context) const override { return compute_all(context, step_); }

 private:
  void plan_image(FieldState& image) const override { plan_step(step_, image); }
  const PixelStep step_;
};

std::unique_ptr<Op> make_grayscale(const Arguments& arguments) {
  const int64_t channels = arguments.integer("num_output_channels");
  if (channels == 2) raise_misfit("Grayscale", "num_output_channels must be 1 or 3 (got 2)");
  const bool pillow = arguments.text("arithmetic") == "pillow";
  return std::make_unique<Grayscale>(pillow ? kPillow : kTorchvision, channels);
}

const OpRecord kGrayscale{
    .name = "Grayscale",
    .doc =
        "Puts the brightness of each pixel in place of its colour.\n\n"
        "Images of one or three channels, (C, H, W), uint8 or float32: they get "
        "num_output_channels equal channels, and keep their dtype. Masks are left as they are. "
        "torchvision and Pillow round differently: of all colours half differ by 1. What decoders "
        "turn to grey is always Pillow's.",
    .params = {{.name = "num_output_channels",
                .type = ParamType::kInt,
                .doc = "1, or 3 for models that want three.",
                .fallback = int64_t{1},
                .minimum = 1,
                .maximum = 3},
               {.name = "arithmetic",
                .type = ParamType::kString,
                .doc = "Whose: \"torchvision\" is 0.2989 R + 0.587 G + 0.114 B, cut off to an "
                       "integer; \"pillow\" is convert(\"L\") of uint8 images, rounded.",
                .fallback = std::string("torchvision"),
                .choices = {"torchvision", "pillow"}}},
    .oracle =
        "torchvision v2's rgb_to_grayscale on tensors of the same dtype, or Pillow's "
        "convert(\"L\"), bit for bit",
    .make = make_grayscale};
const Register<OpRecord> registered_grayscale(kGrayscale);

}  // namespace
}  // namespace headrace
