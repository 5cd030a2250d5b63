// SPDX-License-Identifier: Apache-2.0
// RandomErasing: a random rectangle of an image is set to one value (also known as cutout), or to
// noise.
#include <array>
#include <cmath>
#include <optional>

#include "headrace/base/registry.h"
#include "headrace/ops/geometry/random_window.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

constexpr std::string_view kName = "RandomErasing";

class RandomErasing final : public PictureOp {
 public:
  // No values: noise.
  RandomErasing(double p, const RandomWindowParams& law, std::vector<double> values)
      : p_(p), law_(law), values_(std::move(values)) {}

  DevicePart device_part() const override {
    return values_.empty() ? DevicePart::kPatches : DevicePart::kErase;
  }
  // As in torchvision, masks are unchanged unless fields= includes them.
  bool takes(FieldKind kind) const override { return kind == FieldKind::kImage; }

  Result<void> apply(OpContext& context) const override {
    Result<Size> size = common_size(context);
    if (!size) return std::move(size.error());
    if (!context.draws.coin(p_)) return {};
    const std::optional<Window> window = draw(*size, context.draws);
    if (!window) return {};
    Erased part{.window = *window};
    for (size_t c = 0; c < part.values.size() && !values_.empty(); ++c) {
      part.values[c] = values_[c < values_.size() ? c : 0];
    }
    if (values_.empty()) part.noise = context.draws.key();
    return edit_all(context, [&](Recipe& picture) { return picture.erase(part); });
  }

 private:
  void plan_picture(FieldState& picture) const override {
    if (!values_.empty()) return check_fill(kName, values_, picture, "value");
    if (is_floating(picture.dtype)) return;
    raise_invalid_argument(
        kName,
        "value=\"random\" is noise of mean 0 and standard deviation 1, but \"" + picture.name +
            "\" is " + std::string(name_of(picture.dtype)) + " here",
        "put it after ToDtype and Normalize, where such noise looks like an image");
  }

  // Ten tries for a rectangle that is smaller than the picture in both directions; otherwise none.
  std::optional<Window> draw(Size picture, Draws& draws) const {
    constexpr int kAttempts = 10;
    const double area = static_cast<double>(picture.height) * picture.width;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const double target = area * draws.uniform(law_.scale[0], law_.scale[1]);
      const double ratio = portable_exp(draws.uniform(law_.log_ratio[0], law_.log_ratio[1]));
      // Rounded like Python's round(), ties to even.
      const double height = std::nearbyint(std::sqrt(target * ratio));
      const double width = std::nearbyint(std::sqrt(target / ratio));
      if (height >= picture.height || width >= picture.width) continue;
      const int h = static_cast<int>(height), w = static_cast<int>(width);
      const int y = static_cast<int>(draws.below(picture.height - h + 1));
      const int x = static_cast<int>(draws.below(picture.width - w + 1));
      if (h == 0 || w == 0) return std::nullopt;
      return Window{x, y, w, h};
    }
    return std::nullopt;
  }

  const double p_;
  const RandomWindowParams law_;
  const std::vector<double> values_;
};

std::unique_ptr<Op> make_random_erasing(const Arguments& arguments) {
  const std::vector<double>&scale = arguments.numbers("scale"), &ratio = arguments.numbers("ratio");
  if (scale[0] > scale[1]) raise_invalid_argument(kName, "scale must be (smallest, largest)");
  if (ratio[0] > ratio[1]) raise_invalid_argument(kName, "ratio must be (smallest, largest)");
  return std::make_unique<RandomErasing>(
      arguments.number("p"), RandomWindowParams({scale[0], scale[1]}, {ratio[0], ratio[1]}),
      arguments.is_text("value") ? std::vector<double>() : arguments.numbers("value"));
}

const OpRecord kRandomErasing{
    .name = "RandomErasing",
    .doc =
        "Sets a random rectangle of a record's images to one value or to noise, with probability "
        "p.\n\n"
        "Images, (C, H, W), any dtype; shape and dtype are unchanged, and so are masks. The "
        "rectangle's fraction of the area is uniform in scale, its height / width log-uniform in "
        "ratio; after ten draws that do not fit, nothing is erased. It is cheapest as the last "
        "transform; crops and flips may follow it.",
    .page = {.section = "Erasing transforms", .step = "T.RandomErasing(p=1.0, value=90)"},
    .params = {{.name = "p",
                .type = ParamType::kFloat,
                .doc = "Probability of erasing part of a record's images.",
                .fallback = 0.5,
                .minimum = 0,
                .maximum = 1},
               {.name = "scale",
                .type = ParamType::kFloats,
                .doc = "Smallest and largest fraction of the image's area.",
                .fallback = std::vector<double>{0.02, 0.33},
                .minimum = 0,
                .maximum = 1,
                .min_count = 2,
                .max_count = 2},
               {.name = "ratio",
                .type = ParamType::kFloats,
                .doc = "Smallest and largest height / width of the rectangle.",
                .fallback = std::vector<double>{0.3, 3.3},
                .minimum = 1e-6,
                .maximum = 1e6,
                .min_count = 2,
                .max_count = 2},
               {.name = "value",
                .type = ParamType::kFloats,
                .doc = "Fill value of the rectangle: one number, or one per channel, in the range "
                       "of the image's dtype at this point (0 to 255 for uint8). \"random\", for "
                       "floats: normal noise of mean 0 and deviation 1, per pixel.",
                .fallback = int64_t{0},
                .choices = {"random"},
                .min_count = 1,
                .max_count = kMaxChannels},
               {.name = "inplace",
                .type = ParamType::kBool,
                .doc = "Accepted for compatibility with torchvision; has no effect.",
                .fallback = false}},
    .oracle =
        "torchvision v2's erase on tensors, bit for bit; rectangles and noise in distribution",
    .example = {{"p", 0.9}, {"value", int64_t{9}}, {"inplace", true}},
    .random = true,
    .make = make_random_erasing};
const Register<OpRecord> registered_random_erasing(kRandomErasing);

}  // namespace
}  // namespace headrace
