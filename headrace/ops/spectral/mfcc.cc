// SPDX-License-Identifier: Apache-2.0
// MFCC and LFCC: coefficients of a cosine transform over the decibels of mel filters, or of filters
// that are spaced evenly.
#include <cmath>
#include <string>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/spectral/mel_spectrum.h"
#include "headrace/ops/spectral/spectral_op.h"
#include "headrace/ops/spectral/spectral_params.h"

namespace headrace {
namespace {

class Cepstra final : public SpectralOp {
 public:
  Cepstra(std::string_view name, const Arguments& arguments, std::string_view count,
          MelSpectrum filters)
      : SpectralOp(name, Takes::kWaveform, static_cast<int>(arguments.integer("sample_rate"))),
        mel_(std::move(filters)),
        cosines_(dct_rows(static_cast<int>(arguments.integer(count)), mel_.filters.size(),
                          !arguments.is_none("norm"))),
        logarithms_(arguments.flag(name == "MFCC" ? "log_mels" : "log_lf")) {
    if (cosines_.size() > mel_.filters.size()) {
      raise_invalid_argument(name, std::string(count) + " is " + std::to_string(cosines_.size()) +
                                       ", but there are only " +
                                       std::to_string(mel_.filters.size()) + " filters");
    }
  }

 private:
  Shape shape_after(const Shape& shape) const override {
    return {shape[0], cosines_.size(), frames_after(mel_.spectra.frames, shape[1])};
  }
  std::string misfit(const Shape& shape) const override {
    return why_not_mirrored(mel_.spectra, shape[1]);
  }
  void compute(const At& at, const float* in, const Shape& shape, float* out) const override {
    const FrameKernels& kernels = frame_kernels();
    const Shape mel = mel_.shape_after(shape);
    // Rows are padded to whole vectors, because sums may read that far.
    const int64_t stride = (mel[2] + kernels.lanes - 1) / kernels.lanes * kernels.lanes;
    const int64_t rows = mel[0] * mel[1];
    const std::shared_ptr<Buffer> made =
        at.memory->of(static_cast<size_t>(rows * stride) * sizeof(float));
    auto* const logs = reinterpret_cast<float*>(made->data());
    for (int64_t c = 0; c < mel[0]; ++c) {
      mel_.compute(in + c * shape[1], shape[1], mel[2], logs + c * mel[1] * stride, stride);
    }
    take_logarithms(kernels, rows, mel[2], stride, logs);
    for (int64_t c = 0; c < mel[0]; ++c) {
      kernels.weigh(cosines_, logs + c * mel[1] * stride, stride, static_cast<int>(mel[2]),
                    out + c * cosines_.size() * mel[2], mel[2]);
    }
  }

  void take_logarithms(const FrameKernels& kernels, int64_t rows, int64_t count, int64_t stride,
                       float* logs) const {
    constexpr float kAdded = 1e-6f, kTop = 80;
    for (int64_t r = 0; r < rows; ++r)
      std::fill(logs + r * stride + count, logs + (r + 1) * stride, 0.0f);
    if (!logarithms_) return to_decibels(logs, rows * stride, 10, kTop, logs);
    kernels.raise(logs, rows * stride, 0, kAdded, 1, logs);
    kernels.logarithms(logs, rows * stride, kAdded, logs);
  }

  const MelSpectrum mel_;
  const SparseRows cosines_;
  const bool logarithms_;
};

Param count_param(std::string_view name, std::string_view doc, int64_t fallback) {
  return {.name = name,
          .type = ParamType::kInt,
          .doc = doc,
          .fallback = fallback,
          .minimum = 1,
          .maximum = 4096};
}
Param dct_norm_param() {
  return {
      .name = "norm",
      .type = ParamType::kString,
      .doc =
          "\"ortho\": an orthonormal cosine transform. None: the unnormalized one (twice the sum).",
      .fallback = std::string("ortho"),
      .choices = {"ortho"},
      .or_none = true};
}
Param logarithms_param(std::string_view name) {
  return {.name = name,
          .type = ParamType::kBool,
          .doc =
              "Whether to apply the DCT to ln(x + 1e-6) instead of to decibels (clamped to 80 dB "
              "below the maximum).",
          .fallback = false};
}

std::vector<Param> params_of_mfcc() {
  std::vector<Param> all = {sample_rate_param(),
                            count_param("n_mfcc", "Number of coefficients to keep, of n_mels.", 40),
                            dct_norm_param(), logarithms_param("log_mels")};
  for (Param& param : mel_spectrum_params()) {
    if (param.name == "norm") param.name = "mel_norm";
    all.push_back(std::move(param));
  }
  return all;
}

const OpRecord kMfcc{
    .name = "MFCC",
    .doc =
        "Mel-frequency cepstral coefficients: a cosine transform of mel filter outputs in "
        "decibels.\n\n"
        "A waveform, float32 (channels, frames), becomes (channels, n_mfcc, 1 + frames // "
        "hop_length). torchaudio's melkwargs are separate parameters here; the norm in them is "
        "mel_norm. Decibels are limited to 80 below the record's largest.",
    .page = {.unseen = "it works on audio: [audio features](audio-features.md)"},
    .params = params_of_mfcc(),
    .oracle = "torchaudio.transforms.MFCC, within 1e-3",
    .example = {{"n_mfcc", int64_t{5}},
                {"log_mels", true},
                {"n_fft", int64_t{64}},
                {"win_length", int64_t{50}},
                {"hop_length", int64_t{20}},
                {"f_min", 50.0},
                {"f_max", 7000.0},
                {"pad", int64_t{2}},
                {"n_mels", int64_t{8}},
                {"normalized", true},
                {"mel_norm", std::string("slaney")}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<Cepstra>("MFCC", arguments, "n_mfcc",
                                       mel_spectrum_from("MFCC", arguments, "mel_norm"));
    }};
const Register<OpRecord> registered_mfcc(kMfcc);

MelSpectrum linear_spectrum_from(const Arguments& arguments) {
  Spectra spectra = spectra_from("LFCC", arguments);
  const auto rate = static_cast<double>(arguments.integer("sample_rate"));
  const double lowest = arguments.number("f_min");
  const double highest =
      arguments.is_none("f_max") ? std::floor(rate / 2) : arguments.number("f_max");
  if (lowest >= highest) {
    raise_invalid_argument("LFCC", "f_min must be below f_max (got " + text_of(ParamValue(lowest)) +
                                       " and " + text_of(ParamValue(highest)) + ")");
  }
  const int bins = spectra.frames.fft.bins();
  return {std::move(spectra),
          torchaudio_mel_filters({.count = static_cast<int>(arguments.integer("n_filter")),
                                  .bins = bins,
                                  .sample_rate = rate,
                                  .lowest = lowest,
                                  .highest = highest,
                                  .linear = true})};
}

std::vector<Param> params_of_lfcc() {
  const std::vector<Param> mel = mel_params();
  std::vector<Param> all = {
      sample_rate_param(),
      count_param("n_filter", "Number of filters.", 128),
      mel[1],  // f_min
      mel[2],  // f_max
      count_param("n_lfcc", "Number of coefficients to keep, of n_filter.", 40),
      dct_norm_param(),
      logarithms_param("log_lf")};
  std::ranges::move(frame_params(), std::back_inserter(all));
  all.push_back(pad_param());
  std::ranges::move(window_params(), std::back_inserter(all));
  return all;
}

const OpRecord kLfcc{
    .name = "LFCC",
    .doc =
        "Linear-frequency cepstral coefficients: as MFCC, with filters that are evenly spaced "
        "in Hz.\n\n"
        "A waveform, float32 (channels, frames), becomes (channels, n_lfcc, 1 + frames // "
        "hop_length). torchaudio's speckwargs are separate parameters here.",
    .page = {.unseen = "it works on audio: [audio features](audio-features.md)"},
    .params = params_of_lfcc(),
    .oracle = "torchaudio.transforms.LFCC, within 2e-3",
    .example = {{"n_filter", int64_t{8}},
                {"n_lfcc", int64_t{5}},
                {"log_lf", true},
                {"n_fft", int64_t{64}},
                {"win_length", int64_t{50}},
                {"hop_length", int64_t{20}},
                {"f_min", 50.0},
                {"f_max", 7000.0},
                {"pad", int64_t{2}},
                {"normalized", true}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<Cepstra>("LFCC", arguments, "n_lfcc",
                                       linear_spectrum_from(arguments));
    }};
const Register<OpRecord> registered_lfcc(kLfcc);

}  // namespace
}  // namespace headrace
