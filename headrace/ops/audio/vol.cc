// SPDX-License-Identifier: Apache-2.0
// Vol: makes audio louder or softer.
#include <algorithm>
#include <cmath>

#include "headrace/base/registry.h"
#include "headrace/ops/audio/audio_op.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

class Vol final : public WaveformOp {
 public:
  explicit Vol(float ratio) : WaveformOp("Vol"), ratio_(ratio) {}

 private:
  Result<void> change(const Waveform& waveform, Draws) const override {
    const int64_t count = waveform.channels * waveform.frames;
    for (int64_t i = 0; i < count; ++i) {
      waveform.samples[i] = std::clamp(waveform.samples[i] * ratio_, -1.0f, 1.0f);
    }
    return {};
  }

  const float ratio_;
};

std::unique_ptr<Op> make_vol(const Arguments& arguments) {
  const double gain = arguments.number("gain");
  const std::string& type = arguments.text("gain_type");
  if (type != "db" && gain < 0) {
    raise_invalid_argument("Vol", "gain must not be negative if gain_type is \"" + type + "\"",
                           "gain_type=\"db\" allows negative gains");
  }
  if (type == "power" && gain == 0)
    raise_invalid_argument("Vol", "gain must be positive if gain_type is \"power\"");
  double ratio = gain;
  if (type == "power") ratio = std::pow(10.0, 10 * std::log10(gain) / 20);
  if (type == "db") ratio = std::pow(10.0, gain / 20);
  return std::make_unique<Vol>(static_cast<float>(ratio));
}

const OpRecord kVol{
    .name = "Vol",
    .doc =
        "Makes an audio clip louder or softer.\n\n"
        "Audio, (channels, frames), float32, keeps its shape. As in torchaudio, values beyond full "
        "scale become -1 or 1.",
    .page = {.unseen = "it works on audio: [audio](audio.md)"},
    .params = {{.name = "gain",
                .type = ParamType::kFloat,
                .doc = "The gain, in the unit of gain_type.",
                .required = true},
               {.name = "gain_type",
                .type = ParamType::kString,
                .doc = "\"amplitude\": samples times gain; \"power\": power times gain; \"db\": "
                       "decibels.",
                .fallback = std::string("amplitude"),
                .choices = {"amplitude", "power", "db"}}},
    .oracle = "torchaudio.transforms.Vol, bit for bit",
    .example = {{"gain", 0.5}},
    .make = make_vol};
const Register<OpRecord> registered_vol(kVol);

}  // namespace
}  // namespace headrace
