// SPDX-License-Identifier: Apache-2.0
// TrimSilence: removes silence at the beginning and end.
#include <algorithm>
#include <cmath>
#include <vector>

#include "headrace/base/random.h"
#include "headrace/base/registry.h"
#include "headrace/ops/audio/audio_op.h"

namespace headrace {
namespace {

class TrimSilence final : public AudioOp {
 public:
  TrimSilence(double top_db, int64_t frame_length, int64_t hop_length)
      : AudioOp("TrimSilence"),
        min_share_(portable_exp(-top_db / 10 * portable_log(10))),
        length_(frame_length),
        hop_(hop_length) {}
  bool measures() const override { return true; }
  Rate rate() const override { return Rate::kAny; }

 private:
  static constexpr double kMinPower = 1e-10;

  void plan_audio(FieldState& audio) const override { audio.shape[1] = -1; }

  Result<void> apply_to(FieldValue& audio, Draws, Renderer& renderer) const override {
    if (Result<void> made = make_samples(audio, renderer); !made) return made;
    const int64_t frames = frames_of(audio);
    const std::vector<double> powers = loudest_powers(audio);
    if (powers.empty()) return {};
    const double most = std::max(*std::ranges::max_element(powers), kMinPower);
    const auto is_audible = [&](double power) {
      return std::max(power, kMinPower) > most * min_share_;
    };
    const auto first = std::ranges::find_if(powers, is_audible) - powers.begin();
    auto last = std::ssize(powers) - 1;
    while (last > first && !is_audible(powers[size_t(last)])) --last;
    const int64_t begin = std::min(first * hop_, frames), end = std::min((last + 1) * hop_, frames);
    return take_frames(audio, begin, end - begin, renderer);
  }

  // Mean squares of windows around every hop_-th sample, with zeros beyond both ends; the maximum
  // over channels.
  std::vector<double> loudest_powers(const FieldValue& audio) const {
    const int64_t frames = frames_of(audio), channels = channels_of(audio);
    if (frames == 0 || channels == 0) return {};
    const auto* const samples = reinterpret_cast<const float*>(audio.bytes.data());
    std::vector<double> powers(
        static_cast<size_t>(1 + (frames + length_ / 2 * 2 - length_) / hop_));
    for (int64_t c = 0; c < channels; ++c) {
      for (size_t t = 0; t < powers.size(); ++t) {
        const int64_t at = int64_t(t) * hop_ - length_ / 2;
        const int64_t begin = std::max<int64_t>(at, 0), end = std::min(at + length_, frames);
        powers[t] = std::max(powers[t], energy(samples + c * frames + begin, end - begin));
      }
    }
    for (double& power : powers) power /= double(length_);
    return powers;
  }

  static double energy(const float* samples, int64_t count) {
    // Eight accumulators with a fixed order of additions: the same result on every machine.
    constexpr int64_t kSums = 8;
    double sums[kSums] = {};
    int64_t i = 0;
    for (; i + kSums <= count; i += kSums) {
      for (int64_t j = 0; j < kSums; ++j) {
        const auto sample = double(samples[i + j]);
        sums[j] += sample * sample;
      }
    }
    for (; i < count; ++i) sums[0] += double(samples[i]) * double(samples[i]);
    double sum = 0;
    for (const double each : sums) sum += each;
    return sum;
  }

  const double min_share_;
  const int64_t length_, hop_;
};

Param samples_param(std::string_view name, std::string_view doc, int64_t fallback) {
  return {.name = name,
          .type = ParamType::kInt,
          .doc = doc,
          .fallback = fallback,
          .minimum = 1,
          .maximum = 1 << 24};
}

const OpRecord kTrimSilence{
    .name = "TrimSilence",
    .doc =
        "Removes silence at both ends of an audio clip.\n\n"
        "Audio, (channels, frames), becomes (channels, remaining frames): from the first to the "
        "last window whose power is at most top_db below the loudest window's, in any channel. All "
        "of the audio is decoded; the resulting length is not known in advance.",
    .page = {.unseen = "it works on audio: [audio](audio.md)"},
    .params = {{.name = "top_db",
                .type = ParamType::kFloat,
                .doc = "Threshold for silence, in decibels below the loudest window.",
                .fallback = 60.0,
                .minimum = 0.001,
                .maximum = 400},
               samples_param("frame_length", "Samples per window.", 2048),
               samples_param("hop_length", "Samples from one window to the next.", 512)},
    .oracle = "librosa.effects.trim, the same frames",
    .example = {{"top_db", 1.0}, {"frame_length", int64_t{64}}, {"hop_length", int64_t{16}}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<TrimSilence>(arguments.number("top_db"),
                                           arguments.integer("frame_length"),
                                           arguments.integer("hop_length"));
    }};
const Register<OpRecord> registered_trim_silence(kTrimSilence);

}  // namespace
}  // namespace headrace
