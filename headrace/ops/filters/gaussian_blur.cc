// SPDX-License-Identifier: Apache-2.0
// GaussianBlur: replaces each pixel with a Gaussian-weighted mean of its neighborhood.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/image/gaussian.h"
#include "headrace/kernels/filters/filter_rows.h"
#include "headrace/ops/color/color_steps.h"
#include "headrace/ops/filters/blurs.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

const ErrorCode kTooSmallToBlur{
    "HR0504", ErrorKind::kData, "image smaller than the blur kernel",
    "The border of an image is reflected by half of the blur's kernel_size, so the image must be "
    "larger than that, as in torchvision. Resize before the blur, or use a smaller kernel."};

// Reflects at the ends without repeating the edge.
int mirrored(int at, int size) { return at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at; }

// A ring buffer of as many rows as the kernel is high, independent of the picture's size.
class Blur {
 public:
  Blur(Size size, double sigma, Size kernel)
      : size_(size),
        weights_x_(gaussian_taps(kernel.width, sigma)),
        weights_y_(gaussian_taps(kernel.height, sigma)),
        half_x_(static_cast<int>(weights_x_.size()) / 2),
        half_y_(static_cast<int>(weights_y_.size()) / 2),
        stride_(size_t(size.width) + kPadding),
        padded_(size_t(size.width) + weights_x_.size() + kPadding),
        ring_(stride_ * weights_y_.size()),
        taps_(weights_y_.size()),
        finished_(stride_) {}

  template <class Sample>
  void plane(const Sample* in, Sample* out) {
    int ready = 0;  // number of rows computed so far; the last ones are in the ring
    for (int y = 0; y < size_.height; ++y) {
      for (; ready < std::min(y + half_y_ + 1, size_.height); ++ready) {
        blur_along(in + size_t(ready) * size_t(size_.width), row_at(ready));
      }
      for (size_t t = 0; t < taps_.size(); ++t) {
        taps_[t] = row_at(mirrored(y + static_cast<int>(t) - half_y_, size_.height));
      }
      Sample* const finished = finished_of<Sample>();
      convolve_across(taps_.data(), weights_y_.data(), static_cast<int>(taps_.size()), size_.width,
                      finished);
      std::copy_n(finished, size_.width, out + size_t(y) * size_t(size_.width));
    }
  }

 private:
  static constexpr size_t kPadding = 64;  // more than the elements that kernels touch past a row

  float* row_at(int y) { return ring_.data() + stride_ * (size_t(y) % taps_.size()); }

  template <class Sample>
  Sample* finished_of() {
    return reinterpret_cast<Sample*>(finished_.data());
  }

  template <class Sample>
  void blur_along(const Sample* in, float* out) {
    float* const row = padded_.data() + half_x_;
    if constexpr (std::is_same_v<Sample, uint8_t>) {
      floats_from_bytes(in, size_.width, row);
    } else {
      std::copy_n(in, size_.width, row);
    }
    for (int x = 1; x <= half_x_; ++x) {
      row[-x] = row[mirrored(-x, size_.width)];
      row[size_.width - 1 + x] = row[mirrored(size_.width - 1 + x, size_.width)];
    }
    convolve_along(padded_.data(), weights_x_.data(), static_cast<int>(weights_x_.size()),
                   size_.width, out);
  }

  const Size size_;
  const std::vector<float> weights_x_, weights_y_;
  const int half_x_, half_y_;
  const size_t stride_;
  std::vector<float> padded_, ring_;
  std::vector<const float*> taps_;
  std::vector<float> finished_;  // one row of either type
};

// numbers: kernel width and height, sigma.
Recipe blurred(const PendingPass& pass, const std::shared_ptr<const Picture>& pixels) {
  const Picture& in = *pixels;
  const Size kernel{static_cast<int>(pass.numbers[1]), static_cast<int>(pass.numbers[0])};
  auto out = std::make_shared<Picture>(in.channels, in.height, in.width, in.dtype);
  Blur blur({in.height, in.width}, pass.numbers[2], kernel);
  for (int c = 0; c < in.channels; ++c) {
    if (in.dtype == DType::kUInt8) {
      blur.plane(in.plane(c), out->plane(c));
    } else {
      blur.plane(reinterpret_cast<const float*>(in.plane(c)),
                 reinterpret_cast<float*>(out->plane(c)));
    }
  }
  return Recipe(std::move(out));
}

constexpr PassFunction kBlurPass{blurred, PassCode::kGaussianBlur};

class GaussianBlur final : public PixelOp {
 public:
  GaussianBlur(Size kernel, double least, double most)
      : PixelOp("GaussianBlur"), kernel_(kernel), least_(least), most_(most) {}
  bool measures() const override { return true; }

  Result<void> apply(OpContext& context) const override {
    const double sigma = least_ < most_ ? context.draws.uniform(least_, most_) : least_;
    for (const int field : context.fields) {
      const Size size = context.record.fields[field].picture.size();
      if (size.height <= kernel_.height / 2 || size.width <= kernel_.width / 2) {
        return Error{.code = &kTooSmallToBlur,
                     .what = "[GaussianBlur] kernel_size is " + std::to_string(kernel_.height) +
                             " x " + std::to_string(kernel_.width) +
                             " (height x width), but the image is " + std::to_string(size.height) +
                             " x " + std::to_string(size.width)};
      }
      Result<void> done = do_pass(context, field, gaussian_blur_pass(kernel_, sigma));
      if (!done) return done;
    }
    return {};
  }

 private:
  void plan_image(FieldState& image) const override {
    plan_pixels(true, image);
    const int64_t height = image.shape[1], width = image.shape[2];
    if ((height >= 0 && height <= kernel_.height / 2) ||
        (width >= 0 && width <= kernel_.width / 2)) {
      raise_invalid_argument("GaussianBlur", "kernel_size is larger than twice the size that \"" +
                                                 image.name + "\" has at this point");
    }
  }
  const Size kernel_;
  const double least_, most_;
};

std::unique_ptr<Op> make_gaussian_blur(const Arguments& arguments) {
  const std::vector<int64_t>& kernel = arguments.integers("kernel_size");
  for (const int64_t size : kernel) {
    if (size % 2 == 0) raise_invalid_argument("GaussianBlur", "kernel_size must be odd");
  }
  const std::vector<double>& sigma = arguments.numbers("sigma");
  if (sigma.front() > sigma.back()) {
    raise_invalid_argument("GaussianBlur", "sigma must be one number, or (smallest, largest)");
  }
  // torchvision's order: (horizontal, vertical).
  return std::make_unique<GaussianBlur>(
      Size{static_cast<int>(kernel.back()), static_cast<int>(kernel.front())}, sigma.front(),
      sigma.back());
}

const OpRecord kGaussianBlur{
    .name = "GaussianBlur",
    .doc =
        "Blurs an image with a Gaussian of random width.\n\n"
        "Images of one or three channels, (C, H, W), uint8 or float32; shape and dtype are "
        "unchanged, and so are masks. Borders are mirrored. Earlier transforms are rendered "
        "first, which adds a pass over the image. torchvision gives the same result on Pillow "
        "images.",
    .page = {.section = "Sharpness, blur and noise", .step = "T.GaussianBlur(15, 3.0)"},
    .params = {{.name = "kernel_size",
                .type = ParamType::kInts,
                .doc = "One odd number, or (horizontal, vertical).",
                .required = true,
                .minimum = 1,
                .maximum = 1023,
                .min_count = 1,
                .max_count = 2},
               {.name = "sigma",
                .type = ParamType::kFloats,
                .doc = "Standard deviation in pixels, or a range to draw it from.",
                .fallback = std::vector<double>{0.1, 2.0},
                .minimum = 1e-3,
                .maximum = 1e4,
                .min_count = 1,
                .max_count = 2}},
    .oracle =
        "torchvision v2's gaussian_blur: fewer than 1 value in 10,000 differs, by 1 (torch sums "
        "in a different order); float32 within 4e-6 of the largest value",
    .example = {{"kernel_size", int64_t{5}}, {"sigma", std::vector<double>{0.5, 2.0}}},
    .random = true,
    .make = make_gaussian_blur};
const Register<OpRecord> registered_gaussian_blur(kGaussianBlur);

}  // namespace

PendingPass gaussian_blur_pass(Size kernel, double sigma) {
  return {.function = &kBlurPass, .numbers = {double(kernel.width), double(kernel.height), sigma}};
}

}  // namespace headrace
