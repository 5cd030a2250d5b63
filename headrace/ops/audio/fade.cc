// SPDX-License-Identifier: Apache-2.0
// Fade: fades audio in from silence and out into it.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/ops/audio/audio_op.h"

namespace headrace {
namespace {

const ErrorCode kShorterThanFade{
    "HR0541", ErrorKind::kData, "audio shorter than its fade",
    "Fade affects fade_in_len samples at the start of the audio and fade_out_len at its end, but "
    "this audio has fewer samples. Put PadOrTrim before it to give all audio the same length, or "
    "use a shorter fade."};

// torch.linspace(0, 1, n)[i] in float32, which counts from both ends.
float place(int64_t i, int64_t n) {
  if (n == 1) return 0;
  const float step = 1.0f / static_cast<float>(n - 1);
  return i < n / 2 ? step * static_cast<float>(i) : 1.0f - step * static_cast<float>(n - 1 - i);
}

float clamped(double x) { return static_cast<float>(std::clamp(x, 0.0, 1.0)); }

constexpr double kPi = std::numbers::pi;

float fade_in(const std::string& shape, double x) {
  if (shape == "exponential") return clamped(std::pow(2.0, x - 1) * x);
  if (shape == "logarithmic") return clamped(std::log10(0.1 + x) + 1);
  if (shape == "quarter_sine") return clamped(std::sin(x * kPi / 2));
  if (shape == "half_sine") return clamped(std::sin(x * kPi - kPi / 2) / 2 + 0.5);
  return clamped(x);
}

float fade_out(const std::string& shape, double x) {
  if (shape == "exponential") return clamped(std::pow(2.0, -x) * (1 - x));
  if (shape == "logarithmic") return clamped(std::log10(1.1 - x) + 1);
  if (shape == "quarter_sine") return clamped(std::sin(x * kPi / 2 + kPi / 2));
  if (shape == "half_sine") return clamped(std::sin(x * kPi + kPi / 2) / 2 + 0.5);
  return clamped(1 - x);
}

class Fade final : public WaveformOp {
 public:
  Fade(int64_t in, int64_t out, const std::string& shape) : WaveformOp("Fade") {
    for (int64_t i = 0; i < in; ++i) in_.push_back(fade_in(shape, place(i, in)));
    for (int64_t i = 0; i < out; ++i) out_.push_back(fade_out(shape, place(i, out)));
  }

 private:
  Result<void> change(const Waveform& waveform, Draws) const override {
    const int64_t frames = waveform.frames, in = std::ssize(in_), out = std::ssize(out_);
    if (frames < std::max(in, out)) {
      return Error{.code = &kShorterThanFade,
                   .what = "it has " + std::to_string(frames) + " frames, but the fades have " +
                           std::to_string(in) + " and " + std::to_string(out)};
    }
    for (int64_t c = 0; c < waveform.channels; ++c) {
      float* const x = waveform.channel(c).data();
      // Where the fades overlap, their product.
      for (int64_t i = 0; i < in; ++i) {
        const int64_t at = i - (frames - out);
        x[i] *= in_[size_t(i)] * (at < 0 ? 1.0f : out_[size_t(at)]);
      }
      for (int64_t i = std::max(in, frames - out); i < frames; ++i) {
        x[i] *= out_[size_t(i - (frames - out))];
      }
    }
    return {};
  }

  std::vector<float> in_, out_;
};

Param fade_length(std::string_view name, std::string_view doc) {
  return {.name = name,
          .type = ParamType::kInt,
          .doc = doc,
          .fallback = int64_t{0},
          .minimum = 0,
          .maximum = 1 << 26};
}

const OpRecord kFade{
    .name = "Fade",
    .doc =
        "Fades an audio clip in from silence, and out into silence.\n\n"
        "Audio, (channels, frames), float32, keeps its shape. An audio clip that is shorter "
        "than either fade is a data error; where the fades overlap, their gains are multiplied.",
    .page = {.unseen = "it works on audio: [audio](audio.md)"},
    .params = {fade_length("fade_in_len", "Frames faded at the beginning."),
               fade_length("fade_out_len", "Frames faded at the end."),
               {.name = "fade_shape",
                .type = ParamType::kString,
                .doc = "Shape of the curve, named as in torchaudio.",
                .fallback = std::string("linear"),
                .choices = {"linear", "exponential", "logarithmic", "quarter_sine", "half_sine"}}},
    .oracle = "torchaudio.transforms.Fade, within 1e-6",
    .example = {{"fade_in_len", int64_t{400}}, {"fade_out_len", int64_t{800}}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<Fade>(arguments.integer("fade_in_len"),
                                    arguments.integer("fade_out_len"),
                                    arguments.text("fade_shape"));
    }};
const Register<OpRecord> registered_fade(kFade);

}  // namespace
}  // namespace headrace
