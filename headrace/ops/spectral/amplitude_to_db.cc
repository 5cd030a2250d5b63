// SPDX-License-Identifier: Apache-2.0
// AmplitudeToDB: converts powers or amplitudes to decibels.
#include "headrace/base/registry.h"
#include "headrace/ops/spectral/spectral_op.h"
#include "headrace/ops/spectral/spectral_params.h"

namespace headrace {
namespace {

class AmplitudeToDB final : public SpectralOp {
 public:
  AmplitudeToDB(bool magnitude, std::optional<float> top)
      : SpectralOp("AmplitudeToDB", Takes::kSpectrogram),
        multiplier_(magnitude ? 20.0f : 10.0f),
        top_(top) {}

 private:
  bool in_place(const At&) const override { return true; }
  void compute(const At&, const float* in, const Shape& shape, float* out) const override {
    to_decibels(in, element_count(shape), multiplier_, top_, out);
  }

  const float multiplier_;
  const std::optional<float> top_;
};

const OpRecord kAmplitudeToDB{
    .name = "AmplitudeToDB",
    .doc =
        "Converts a spectrogram to decibels: 10 log10 of powers, 20 log10 of magnitudes, where "
        "values below 1e-10 become 1e-10.\n\n"
        "A spectrogram, float32 (channels, bins, frames), keeps its shape. With top_db, values are "
        "at most that far below the record's largest.",
    .page = {.unseen = "it works on audio: [audio features](audio-features.md)"},
    .params =
        {{.name = "stype",
          .type = ParamType::kString,
          .doc = "Scale of the spectrogram: \"power\" or \"magnitude\".",
          .fallback = std::string("power"),
          .choices = {"power", "magnitude"}},
         {.name = "top_db",
          .type = ParamType::kFloat,
          .doc = "Values further than this below the record's largest, in dB, are raised to that "
                 "level; None: no such limit.",
          .minimum = 0,
          .maximum = 1e6}},
    .oracle = "torchaudio.transforms.AmplitudeToDB, within 1e-4 dB",
    .example = {{"top_db", 80.0}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      std::optional<float> top;
      if (!arguments.is_none("top_db")) top = static_cast<float>(arguments.number("top_db"));
      return std::make_unique<AmplitudeToDB>(arguments.text("stype") == "magnitude", top);
    }};
const Register<OpRecord> registered_amplitude_to_db(kAmplitudeToDB);

}  // namespace
}  // namespace headrace
