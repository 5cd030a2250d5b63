// SPDX-License-Identifier: Apache-2.0
// MixUp: blends the records of a group, and their labels.
#include "headrace/base/random.h"
#include "headrace/base/registry.h"
#include "headrace/ops/batch/batch_mixing.h"

namespace headrace {
namespace {

class MixUp final : public MixingOp {
 public:
  using MixingOp::MixingOp;

 private:
  Mix draw(Draws& draws, double alpha, Size) const override {
    return {.own = static_cast<float>(draw_beta(draws, alpha))};  // same formula as torch
  }
  RowMix row_mix(const Mix& mix, Size image) const override {
    return {.own = static_cast<float>(mix.own),
            .rest = static_cast<float>(1.0 - mix.own),
            .bottom = image.height,
            .right = image.width};
  }
  void mix_images(const GroupField& field, const std::vector<Mix>& mixes,
                  MemoryFormat) const override {
    std::vector<double> own;
    for (const Mix& mix : mixes) own.push_back(mix.own);
    blend_rows(field.rows, field.row_bytes, field.state->dtype, own);
  }
};

const OpRecord kMixUp{
    .name = "MixUp",
    .doc =
        "Blends each record with the previous record in its group, and their labels in the same "
        "proportion.\n\n"
        "Images, (C, H, W), float32, float16 or bfloat16, keep shape and dtype; labels, one int64 "
        "each, become float32 (num_classes), which sums to 1. It runs once the batch is filled, "
        "over groups of positions of the epoch, so its result does not depend on the number of "
        "ranks; no transform of its fields can follow it. All frames of a video clip are blended "
        "alike. Boxes, keypoints and masks cannot be blended: a pipeline with them is rejected "
        "(HR0133).",
    .page = {.section = "Batch mixing",
             .step = "T.MixUp(num_classes=4, group=4, uint8=True)",
             .boxes = false},
    .params = mixing_params("Accept uint8 images too: mixed in float32, rounded to nearest."),
    .oracle =
        "torchvision v2's MixUp on the group, bit for bit for a given lambda, which is "
        "Beta-distributed",
    .example = {{"num_classes", int64_t{10}},
                {"per_record", true},
                {"label_smoothing", 0.1},
                {"uint8", true}},
    .scope = OpScope::kBatch,
    .random = true,
    .make_batch = [](const Arguments& arguments) -> std::unique_ptr<BatchOp> {
      return std::make_unique<MixUp>("MixUp", mixing_options(arguments));
    }};
const Register<OpRecord> registered_mix_up(kMixUp);

}  // namespace
}  // namespace headrace
