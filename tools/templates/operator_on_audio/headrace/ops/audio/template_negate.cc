// SPDX-License-Identifier: Apache-2.0
// TemplateNegate: inverts the sign of audio.
#include "headrace/base/registry.h"
#include "headrace/ops/audio/audio_op.h"

namespace headrace {
namespace {

class TemplateNegate final : public WaveformOp {
 public:
  TemplateNegate() : WaveformOp("TemplateNegate") {}

 private:
  Result<void> change(const Waveform& waveform, Draws) const override {
    const int64_t count = waveform.channels * waveform.frames;
    for (int64_t i = 0; i < count; ++i) waveform.samples[i] = -waveform.samples[i];
    return {};
  }
};

const OpRecord kTemplateNegate{.name = "TemplateNegate",
                               .doc =
                                   "Inverts the sign of all samples.\n\n"
                                   "Audio, (channels, frames), float32, keeps its shape.",
                               .page = {.unseen = "sounds alone"},
                               .params = {},
                               .oracle = "its test",
                               .make = [](const Arguments&) -> std::unique_ptr<Op> {
                                 return std::make_unique<TemplateNegate>();
                               }};
const Register<OpRecord> registered_template_negate(kTemplateNegate);

}  // namespace
}  // namespace headrace
