// SPDX-License-Identifier: Apache-2.0
// Normalize: (x - mean) / std, per channel.
#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

class Normalize final : public PictureOp {
 public:
  Normalize(const std::vector<double>& mean, const std::vector<double>& std)
      : step_{.kind = MapStep::Kind::kNormalize,
              .mean = {mean.begin(), mean.end()},
              .std = {std.begin(), std.end()}} {}

  bool takes(FieldKind kind) const override { return kind == FieldKind::kImage; }
  DevicePart device_part() const override { return DevicePart::kMap; }

  Result<void> apply(OpContext& context) const override {
    return edit_all(context, [&](Recipe& picture) { return picture.map(step_); });
  }

 private:
  void plan_picture(FieldState& picture) const override {
    if (picture.kind == FieldKind::kMask) {
      raise_invalid_argument("Normalize",
                             "\"" + picture.name + "\" is a mask: its values are class ids",
                             "remove it from fields=; kinds={\"" + picture.name +
                                 "\": \"image\"} says that it is an image");
    }
    if (!is_floating(picture.dtype)) {
      raise_invalid_argument("Normalize",
                             "works on floats, but \"" + picture.name + "\" is " +
                                 std::string(name_of(picture.dtype)) + " here",
                             "put ToDtype(float32, scale=True) before it");
    }
    check_count("mean", step_.mean.size(), picture);
    check_count("std", step_.std.size(), picture);
  }

  static void check_count(const std::string& which, size_t count, const FieldState& picture) {
    if (count == 1 || static_cast<int64_t>(count) == picture.shape[0]) return;
    raise_invalid_argument("Normalize", which + " must have one value, or one for each of the " +
                                            std::to_string(picture.shape[0]) + " channels of \"" +
                                            picture.name + "\" (got " + std::to_string(count) +
                                            ")");
  }

  const MapStep step_;
};

std::unique_ptr<Op> make(const Arguments& arguments) {
  const std::vector<double>& std = arguments.numbers("std");
  // In float32, like the divisor.
  if (std::ranges::any_of(std, [](double value) { return static_cast<float>(value) == 0; })) {
    raise_invalid_argument("Normalize", "std must not be 0", "use 1 for a constant channel");
  }
  return std::make_unique<Normalize>(arguments.numbers("mean"), std);
}

const OpRecord kNormalize{
    .name = "Normalize",
    .doc =
        "Subtracts a mean and divides by a standard deviation, per channel.\n\n"
        "Images of a floating-point dtype, (C, H, W); shape and dtype are unchanged. mean and std "
        "are in the range that the values have at this point: 0.0 to 1.0 after ToDtype(float32, "
        "scale=True).",
    .page = {.unseen = "show() reverses it for display"},
    .params = {{.name = "mean",
                .type = ParamType::kFloats,
                .doc = "One number per channel, or one for all.",
                .required = true,
                .min_count = 1,
                .max_count = kMaxChannels},
               {.name = "std",
                .type = ParamType::kFloats,
                .doc = "One number per channel, or one for all; not 0.",
                .required = true,
                .min_count = 1,
                .max_count = kMaxChannels},
               {.name = "inplace",
                .type = ParamType::kBool,
                .doc = "Accepted for compatibility with torchvision; has no effect.",
                .fallback = false}},
    .oracle = "torchvision v2's normalize on tensors of the same dtype, bit for bit",
    .example = {{"mean", std::vector<double>{0.485, 0.456, 0.406}},
                {"std", std::vector<double>{0.229, 0.224, 0.225}},
                {"inplace", true}},
    .make = make};
const Register<OpRecord> registered_normalize(kNormalize);

}  // namespace
}  // namespace headrace
