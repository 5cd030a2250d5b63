// SPDX-License-Identifier: Apache-2.0
// TemplateInvert: inverts an image.
#include "headrace/base/registry.h"
#include "headrace/ops/pixel_op.h"

namespace headrace {
namespace {

void invert_bytes(const PixelStep&, const uint8_t* const in[], int channels, int count,
                  uint8_t* const out[]) {
  for (int c = 0; c < channels; ++c) {
    for (int i = 0; i < count; ++i) out[c][i] = static_cast<uint8_t>(255 - in[c][i]);
  }
}
constexpr PixelFunction kInvert{[](const PixelStep&, int in) { return in; }, invert_bytes, nullptr};

class TemplateInvert final : public PixelOp {
 public:
  TemplateInvert() : PixelOp("TemplateInvert") {}
  Result<void> apply(OpContext& context) const override {
    return compute_all(context, {&kInvert, {}});
  }

 private:
  void plan_image(FieldState& image) const override { plan_step({&kInvert, {}}, image); }
};

const OpRecord kTemplateInvert{
    .name = "TemplateInvert",
    .doc = "Inverts an image.\n\nuint8 images; the dtype is unchanged.",
    .page = {.section = "Color transforms", .step = "T.TemplateInvert()"},
    .params = {},
    .oracle = "torchvision v2's invert, bit for bit",
    .make = [](const Arguments&) -> std::unique_ptr<Op> {
      return std::make_unique<TemplateInvert>();
    }};
const Register<OpRecord> registered_template_invert(kTemplateInvert);

}  // namespace
}  // namespace headrace
