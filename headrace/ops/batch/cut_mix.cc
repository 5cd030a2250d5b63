// SPDX-License-Identifier: Apache-2.0
// CutMix: a box of each record's image comes from another record of its group, and the label is
// mixed in proportion.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "headrace/base/random.h"
#include "headrace/base/registry.h"
#include "headrace/ops/batch/batch_mixing.h"

namespace headrace {
namespace {

class CutMix final : public MixingOp {
 public:
  using MixingOp::MixingOp;

 private:
  Mix draw(Draws& draws, double alpha, Size image) const override {
    const int x = static_cast<int>(draws.below(image.width));
    const int y = static_cast<int>(draws.below(image.height));
    const double half = 0.5 * std::sqrt(1.0 - draw_beta(draws, alpha));
    const int half_width = static_cast<int>(half * image.width);
    const int half_height = static_cast<int>(half * image.height);
    const int left = std::max(x - half_width, 0), top = std::max(y - half_height, 0);
    const Window box{left, top, std::min(x + half_width, image.width) - left,
                     std::min(y + half_height, image.height) - top};
    // The area that is actually replaced, because boxes are clipped at the border.
    const double area = static_cast<double>(int64_t{box.width} * box.height);
    const double all = static_cast<double>(int64_t{image.width} * image.height);
    return {.own = 1.0 - area / all, .box = box};
  }

  RowMix row_mix(const Mix& mix, Size) const override {
    return {.top = mix.box.y,
            .left = mix.box.x,
            .bottom = mix.box.y + mix.box.height,
            .right = mix.box.x + mix.box.width,
            .copies = 1};
  }

  // Line by line, so that only a small copy of the row that is written first has to be kept.
  void mix_images(const GroupField& field, const std::vector<Mix>& mixes,
                  MemoryFormat format) const override {
    const Shape& shape = field.state->shape;
    const bool planar = format == MemoryFormat::kChannelsFirst;
    const int64_t height = shape[1];
    const int64_t lines = field.pictures * (planar ? shape[0] * height : height);
    const size_t pixel = size_of(field.state->dtype) * size_t(planar ? 1 : shape[0]);
    const size_t bytes = size_t(shape[2]) * pixel;
    std::vector<uint8_t> last(bytes);
    for (int64_t line = 0; line < lines; ++line) {
      const size_t at = size_t(line) * bytes;
      const int64_t y = line % height;
      std::memcpy(last.data(), field.rows.back() + at, bytes);
      for (size_t row = field.rows.size(); row-- > 0;) {
        const Window& box = mixes[row].box;
        if (y < box.y || y >= box.y + box.height) continue;
        const uint8_t* const partner = row > 0 ? field.rows[row - 1] + at : last.data();
        const size_t left = size_t(box.x) * pixel;
        std::memcpy(field.rows[row] + at + left, partner + left, size_t(box.width) * pixel);
      }
    }
  }
};

const OpRecord kCutMix{
    .name = "CutMix",
    .doc =
        "Replaces a box in each image with the same box from the previous record in its group, and "
        "mixes labels in proportion.\n\n"
        "Images, (C, H, W), float32, float16 or bfloat16, keep shape and dtype; labels, one int64 "
        "each, become float32 (num_classes), which sums to 1. It runs once the batch is filled, "
        "over groups of positions of the epoch, so its result does not depend on the number of "
        "ranks; no transform of its fields can follow it. All frames of a video clip share one "
        "box. Boxes, keypoints and masks cannot be mixed: a pipeline with them is rejected "
        "(HR0133).",
    .page = {.section = "Batch mixing",
             .step = "T.CutMix(num_classes=4, group=4, uint8=True)",
             .boxes = false},
    .params = mixing_params("Accept uint8 images too, whose pixels are copied."),
    .oracle =
        "torchvision v2's CutMix on the group, bit for bit for a given box, whose distribution is "
        "the same",
    .example = {{"num_classes", int64_t{10}},
                {"per_record", true},
                {"label_smoothing", 0.1},
                {"uint8", true}},
    .scope = OpScope::kBatch,
    .random = true,
    .make_batch = [](const Arguments& arguments) -> std::unique_ptr<BatchOp> {
      return std::make_unique<CutMix>("CutMix", mixing_options(arguments));
    }};
const Register<OpRecord> registered_cut_mix(kCutMix);

}  // namespace
}  // namespace headrace
