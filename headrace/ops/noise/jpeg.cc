// SPDX-License-Identifier: Apache-2.0
// JPEG: artifacts of JPEG compression at some quality.
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/codecs/image/jpeg/writer.h"
#include "headrace/ops/color/color_steps.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/pixel_op.h"

namespace headrace {
namespace {

class Jpeg final : public WholeImageOp {
 public:
  Jpeg(int64_t least, int64_t most) : WholeImageOp("JPEG"), least_(least), most_(most) {}

  Result<void> apply(OpContext& context) const override {
    const int quality = static_cast<int>(least_ + context.draws.below(most_ - least_ + 1));
    return transform_images(context, [&](const Picture& in, Picture& out) {
      return stored(in, quality, context.renderer, out);
    });
  }

 private:
  void plan_image(FieldState& image) const override { plan_step(table_step({}), image); }

  static Result<void> stored(const Picture& in, int quality, Renderer& renderer, Picture& out) {
    PlanarBytes planes{.channels = in.channels, .width = in.width, .height = in.height};
    for (int c = 0; c < in.channels; ++c) planes.plane[c] = in.plane(c);
    const Result<std::vector<uint8_t>> bytes = jpeg_from_planes(planes, quality);
    if (!bytes) return bytes.error();
    Result<EncodedImage> encoded = renderer.open(*bytes, {});
    if (!encoded) return std::move(encoded.error());
    encoded->color = in.channels == 1 ? ColorMode::kGray : ColorMode::kRGB;
    const Recipe recipe(*encoded);
    // Rendered immediately, not together with other records: the bytes are local.
    RenderTask task{
        .recipe = &recipe, .target = {.data = out.pixels.data(), .batch = false}, .result = {}};
    renderer.render({&task, 1});
    return std::move(task.result);
  }

  const int64_t least_, most_;
};

const OpRecord kJpeg{
    .name = "JPEG",
    .doc =
        "Adds the artifacts of JPEG compression at a fixed or random quality.\n\n"
        "Images of one or three channels, (C, H, W), uint8; shape and dtype are unchanged, and so "
        "are masks. Chroma has half the resolution (4:2:0). Earlier transforms are rendered first, "
        "which adds a pass over the image.",
    .page = {.section = "Sharpness, blur and noise", .step = "T.JPEG((3, 10))"},
    .params = {{.name = "quality",
                .type = ParamType::kInts,
                .doc = "From 1 to 100, lower is worse: one number, or (smallest, largest), both "
                       "included, to draw it from.",
                .required = true,
                .minimum = 1,
                .maximum = 100,
                .min_count = 1,
                .max_count = 2}},
    .oracle = "Pillow's save and open, as torchvision v2's jpeg on its images, bit for bit",
    .example = {{"quality", std::vector<int64_t>{5, 60}}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      const std::vector<int64_t>& quality = arguments.integers("quality");
      if (quality.front() > quality.back()) {
        raise_invalid_argument("JPEG", "quality must be one number, or (smallest, largest)");
      }
      return std::make_unique<Jpeg>(quality.front(), quality.back());
    }};
const Register<OpRecord> registered_jpeg(kJpeg);

}  // namespace
}  // namespace headrace
