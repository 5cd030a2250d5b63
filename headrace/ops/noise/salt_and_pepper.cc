// SPDX-License-Identifier: Apache-2.0
// SaltAndPepper: some pixels become white, some black.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/kernels/noise_rows.h"
#include "headrace/ops/color/color_steps.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/pixel_op.h"

namespace headrace {
namespace {

constexpr std::string_view kSalt = "SaltAndPepper";

using Share = std::array<double, 2>;

Share share_from(const Arguments& arguments, std::string_view name) {
  const std::vector<double>& given = arguments.numbers(name);
  if (given.front() > given.back()) {
    raise_invalid_argument(kSalt,
                           std::string(name) + " must be one number, or (smallest, largest)");
  }
  return {given.front(), given.back()};
}

class SaltAndPepper final : public WholeImageOp {
 public:
  SaltAndPepper(Share amount, Share salt, double p)
      : WholeImageOp(kSalt), amount_(amount), salt_(salt), p_(p) {}

  Result<void> apply(OpContext& context) const override {
    if (!context.draws.coin(p_)) return {};
    const double amount = context.draws.uniform(amount_[0], amount_[1]);
    const double salt = amount * context.draws.uniform(salt_[0], salt_[1]);
    // 31-bit numbers, because SIMD instruction sets have signed comparisons.
    const auto white = static_cast<int32_t>(salt * 0x7fffffff);
    const auto either = static_cast<int32_t>(amount * 0x7fffffff);
    return transform_images(context, [&](const Picture& in, Picture& out) -> Result<void> {
      const uint64_t key = context.draws.key();
      constexpr size_t kPadding = kNoiseTile;
      const size_t width = size_t(in.width);
      std::vector<uint32_t> numbers(size_t(noise_room(in.width)));
      std::vector<uint8_t> from(width + kPadding), to(width + kPadding);
      for (int y = 0; y < in.height; ++y) {
        random_row(key, static_cast<uint32_t>(y), in.width, numbers.data());
        for (int c = 0; c < in.channels; ++c) {
          std::copy_n(in.plane(c) + width * size_t(y), width, from.data());
          salt_and_pepper_row(from.data(), numbers.data(), in.width, white, either, to.data());
          std::copy_n(to.data(), width, out.plane(c) + width * size_t(y));
        }
      }
      return {};
    });
  }

 private:
  void plan_image(FieldState& image) const override { plan_step(table_step({}), image); }
  const Share amount_, salt_;
  const double p_;
};

const OpRecord kSaltAndPepper{
    .name = "SaltAndPepper",
    .doc =
        "Makes some pixels of an image white and some black, with probability p.\n\n"
        "Images of one or three channels, (C, H, W), uint8; shape and dtype are unchanged, and "
        "so are masks. Each pixel is drawn independently, with all of its channels. Earlier "
        "transforms are rendered first, which adds a pass over the image.",
    .page = {.section = "Sharpness, blur and noise", .step = "T.SaltAndPepper(0.1, p=1.0)"},
    .params = {{.name = "amount",
                .type = ParamType::kFloats,
                .doc = "Fraction of pixels that change, or a range to draw it from.",
                .fallback = std::vector<double>{0.01, 0.06},
                .minimum = 0,
                .maximum = 1,
                .min_count = 1,
                .max_count = 2},
               {.name = "salt_vs_pepper",
                .type = ParamType::kFloats,
                .doc = "Fraction of white pixels among these, or a range to draw it from.",
                .fallback = std::vector<double>{0.4, 0.6},
                .minimum = 0,
                .maximum = 1,
                .min_count = 1,
                .max_count = 2},
               probability_param("Probability of changing a record's images.")},
    .oracle = "Albumentations' SaltAndPepper, in distribution",
    .example = {{"amount", 0.2}, {"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<SaltAndPepper>(share_from(arguments, "amount"),
                                             share_from(arguments, "salt_vs_pepper"),
                                             arguments.number("p"));
    }};
const Register<OpRecord> registered_salt_and_pepper(kSaltAndPepper);

}  // namespace
}  // namespace headrace
