// SPDX-License-Identifier: Apache-2.0
// TemplateBrighten: brightens an image by 40 of 255.
#include "headrace/base/registry.h"
#include "headrace/kernels/template_rows.h"
#include "headrace/ops/pixel_op.h"

namespace headrace {
namespace {

constexpr int kBy = 40;

void brighten(const PixelStep&, const uint8_t* const in[], int channels, int count,
              uint8_t* const out[]) {
  for (int c = 0; c < channels; ++c) template_brighten_row(in[c], kBy, count, out[c]);
}
constexpr PixelFunction kBrighten{[](const PixelStep&, int in) { return in; }, brighten, nullptr};

const OpRecord kTemplateBrighten{
    .name = "TemplateBrighten",
    .doc = "Brightens an image by 40 of 255.\n\nuint8 images; the dtype is unchanged.",
    .page = {.section = "Color transforms", .step = "T.TemplateBrighten()"},
    .params = {},
    .oracle = "Pillow's ImageChops.add of 40, bit for bit",
    .make = [](const Arguments&) -> std::unique_ptr<Op> {
      return std::make_unique<FixedPixelOp>("TemplateBrighten", PixelStep{&kBrighten, {}});
    }};
const Register<OpRecord> registered_template_brighten(kTemplateBrighten);

}  // namespace
}  // namespace headrace
