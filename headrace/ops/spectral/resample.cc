// SPDX-License-Identifier: Apache-2.0
// Resample, Speed and SpeedPerturbation: a waveform at another sample rate, or faster.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/spectral/resamplers.h"
#include "headrace/ops/spectral/spectral_op.h"

namespace headrace {
namespace {

// Null if both rates are the same. HR0510 if there is no filter.
std::unique_ptr<const AudioResampler> resampler_of(std::string_view owner,
                                                   const ResampleSettings& settings) {
  if (settings.orig_freq == settings.new_freq) return nullptr;
  const std::string reason = unsupported_rate_ratio(settings);
  if (!reason.empty())
    raise_invalid_argument(owner, reason, "use rates that are multiples of 10 Hz");
  return std::make_unique<AudioResampler>(settings);
}

Shape shape_by(const AudioResampler* by, const Shape& shape) {
  return {shape[0], shape[1] < 0 || !by ? shape[1] : by->length_after(shape[1])};
}

void resample_all(const AudioResampler* by, const float* in, const Shape& shape, float* out) {
  const int64_t after = shape_by(by, shape)[1];
  for (int64_t c = 0; c < shape[0]; ++c) {
    if (by) {
      by->resample(in + c * shape[1], shape[1], out + c * after);
    } else if (in != out) {
      std::copy_n(in + c * shape[1], shape[1], out + c * after);
    }
  }
}

class Resample final : public SpectralOp {
 public:
  // `orig_freq` 0: the audio's own rate.
  Resample(const ResampleSettings& settings, int orig_freq)
      : SpectralOp("Resample", Takes::kWaveform),
        resamplers_(settings),
        new_freq_(static_cast<int>(settings.new_freq)),
        orig_freq_(orig_freq) {
    if (orig_freq_ == 0) return;
    const std::string reason = resamplers_.refusal(orig_freq_, new_freq_);
    if (!reason.empty())
      raise_invalid_argument("Resample", reason, "use rates that are multiples of 10 Hz");
  }
  Rate rate() const override { return Rate::kSets; }

 private:
  bool outputs_audio() const override { return true; }
  int rate_after(int) const override { return new_freq_; }
  bool in_place(const At& at) const override { return !by(orig_of(at)); }

  Shape shape_after(const Shape& shape) const override {
    if (orig_freq_ == 0) return {shape[0], -1};  // records differ in rate
    return shape_by(by(orig_freq_).get(), shape);
  }
  int orig_of(const At& at) const { return orig_freq_ ? orig_freq_ : at.sample_rate; }
  std::shared_ptr<const AudioResampler> by(int orig_freq) const {
    return resamplers_.between(orig_freq, new_freq_);
  }
  Shape shape_at(const At& at, const Shape& shape) const override {
    return shape_by(by(orig_of(at)).get(), shape);
  }
  std::string rate_mismatch(int sample_rate) const override {
    if (orig_freq_ != 0 && sample_rate != 0 && sample_rate != orig_freq_) {
      return "has " + std::to_string(sample_rate) + " Hz, but orig_freq is " +
             std::to_string(orig_freq_) + ": omit it to use each audio clip's own rate";
    }
    if (orig_freq_ == 0 && sample_rate == 0) return "has no known sample rate: set orig_freq=";
    return orig_freq_ != 0 ? "" : resamplers_.refusal(sample_rate, new_freq_);
  }
  void compute(const At& at, const float* in, const Shape& shape, float* out) const override {
    resample_all(by(orig_of(at)).get(), in, shape, out);
  }

  const Resamplers resamplers_;
  const int new_freq_, orig_freq_;
};

// Changes the speed by a random one of several factors.
class Speed final : public SpectralOp {
 public:
  Speed(std::string_view name, int64_t orig_freq, const std::vector<double>& factors)
      : SpectralOp(name, Takes::kWaveform, static_cast<int>(orig_freq)) {
    for (const double factor : factors) {
      const auto from = static_cast<int64_t>(factor * static_cast<double>(orig_freq));
      if (from < 1) {
        raise_invalid_argument(name, "a factor is too small: " + text_of(ParamValue(factor)) +
                                         " of " + std::to_string(orig_freq) +
                                         " Hz is less than 1 Hz");
      }
      resamplers_.push_back(resampler_of(name, {.orig_freq = from, .new_freq = orig_freq}));
    }
  }

 private:
  bool outputs_audio() const override { return true; }
  Shape shape_after(const Shape& shape) const override {
    Shape after = shape_by(resamplers_[0].get(), shape);
    for (const auto& each : resamplers_) {
      if (shape_by(each.get(), shape) != after) after[1] = -1;
    }
    return after;
  }
  const AudioResampler* drawn(Draws draws) const {
    const auto count = static_cast<int64_t>(resamplers_.size());
    return resamplers_[static_cast<size_t>(count > 1 ? draws.below(count) : 0)].get();
  }
  Shape shape_at(const At& at, const Shape& shape) const override {
    return shape_by(drawn(at.draws), shape);
  }
  void compute(const At& at, const float* in, const Shape& shape, float* out) const override {
    resample_all(drawn(at.draws), in, shape, out);
  }

  std::vector<std::unique_ptr<const AudioResampler>> resamplers_;
};

Param frequency_param(std::string_view name, std::string_view doc) {
  return {.name = name,
          .type = ParamType::kInt,
          .doc = doc,
          .fallback = int64_t{16000},
          .minimum = 1,
          .maximum = 1 << 20};
}
Param orig_freq_param() {
  Param param = frequency_param("orig_freq", "Sample rate of the waveform.");
  param.fallback = {};
  param.required = true;
  return param;
}

const OpRecord kResample{
    .name = "Resample",
    .doc =
        "Resamples a waveform to another sample rate with a windowed sinc filter.\n\n"
        "A waveform, float32 (channels, frames), becomes (channels, ceil(frames * new_freq / "
        "orig_freq)). Clips of different rates get the same rate; without orig_freq their "
        "resulting length is not known in advance. Only the nonzero weights of torchaudio's "
        "filter are used, and an output sample does not depend on how much of the waveform "
        "around it was decoded.",
    .page = {.unseen = "it works on audio: [audio features](audio-features.md)"},
    .params =
        {{.name = "orig_freq",
          .type = ParamType::kInt,
          .doc = "Sample rate of the waveform; None: each audio clip's own, from its file.",
          .minimum = 1,
          .maximum = 1 << 20},
         frequency_param("new_freq", "The new rate."),
         {.name = "resampling_method",
          .type = ParamType::kString,
          .doc = "Window of the sinc: Hann or Kaiser.",
          .fallback = std::string("sinc_interp_hann"),
          .choices = {"sinc_interp_hann", "sinc_interp_kaiser"}},
         {.name = "lowpass_filter_width",
          .type = ParamType::kInt,
          .doc =
              "Zero crossings of the sinc on either side: more make the filter sharper and slower.",
          .fallback = int64_t{6},
          .minimum = 1,
          .maximum = 1024},
         {.name = "rolloff",
          .type = ParamType::kFloat,
          .doc = "Cutoff of the filter, as a fraction of half the lower rate.",
          .fallback = 0.99,
          .minimum = 0.01,
          .maximum = 1},
         {.name = "beta",
          .type = ParamType::kFloat,
          .doc = "Beta of the Kaiser window; None: 14.769656459379492.",
          .minimum = 0,
          .maximum = 100}},
    .oracle = "torchaudio.transforms.Resample, within 1e-5 of the largest value",
    .example = {{"orig_freq", int64_t{44100}}, {"beta", 12.0}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      ResampleSettings settings{
          .new_freq = arguments.integer("new_freq"),
          .lowpass_filter_width = static_cast<int>(arguments.integer("lowpass_filter_width")),
          .rolloff = arguments.number("rolloff"),
          .kaiser = arguments.text("resampling_method") == "sinc_interp_kaiser"};
      if (!arguments.is_none("beta")) settings.beta = arguments.number("beta");
      const bool own = arguments.is_none("orig_freq");
      return std::make_unique<Resample>(settings,
                                        own ? 0 : static_cast<int>(arguments.integer("orig_freq")));
    }};
const Register<OpRecord> registered_resample(kResample);

const OpRecord kSpeed{
    .name = "Speed",
    .doc =
        "Speeds a waveform up by a factor, which raises its pitch.\n\n"
        "A waveform, float32 (channels, frames), is resampled from int(factor * orig_freq) to "
        "orig_freq: (channels, frames / factor), rounded up.",
    .page = {.unseen = "it works on audio: [audio features](audio-features.md)"},
    .params = {orig_freq_param(),
               {.name = "factor",
                .type = ParamType::kFloat,
                .doc = "Speed-up factor; below 1: slower.",
                .required = true,
                .minimum = 0.001,
                .maximum = 1000}},
    .oracle = "torchaudio.transforms.Speed, within 1e-5 of the largest value",
    .example = {{"orig_freq", int64_t{16000}}, {"factor", 1.1}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<Speed>("Speed", arguments.integer("orig_freq"),
                                     std::vector<double>{arguments.number("factor")});
    }};
const Register<OpRecord> registered_speed(kSpeed);

const OpRecord kSpeedPerturbation{
    .name = "SpeedPerturbation",
    .doc =
        "Speeds a waveform up by one of several factors, each equally probable.\n\n"
        "A waveform, float32 (channels, frames), becomes the result of Speed; the number of "
        "frames varies with the factor.",
    .page = {.unseen = "it works on audio: [audio features](audio-features.md)"},
    .params = {orig_freq_param(),
               {.name = "factors",
                .type = ParamType::kFloats,
                .doc = "Speed-up factor; below 1: slower.",
                .required = true,
                .minimum = 0.001,
                .maximum = 1000,
                .min_count = 1,
                .max_count = 64}},
    .oracle =
        "torchaudio.transforms.SpeedPerturbation, in distribution; each outcome within 1e-5 of "
        "the largest value",
    .example = {{"orig_freq", int64_t{16000}}, {"factors", std::vector<double>{0.9, 1.1}}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<Speed>("SpeedPerturbation", arguments.integer("orig_freq"),
                                     arguments.numbers("factors"));
    }};
const Register<OpRecord> registered_speed_perturbation(kSpeedPerturbation);

}  // namespace
}  // namespace headrace
