// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/spectral/spectral_params.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "headrace/kernels/audio/window.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/spectral/spectral_op.h"

namespace headrace {
namespace {

template <class Value, size_t n>
Value named(const std::array<std::pair<std::string_view, Value>, n>& names, std::string_view name) {
  for (const auto& [known, value] : names) {
    if (known == name) return value;
  }
  return names[0].second;
}

constexpr std::array<std::pair<std::string_view, WindowShape>, 4> kWindows{{
    {"hann_window", WindowShape::kHann},
    {"hamming_window", WindowShape::kHamming},
    {"blackman_window", WindowShape::kBlackman},
    {"bartlett_window", WindowShape::kBartlett},
}};

constexpr std::array<std::pair<std::string_view, SignalEdge>, 4> kEdges{{
    {"reflect", SignalEdge::kReflect},
    {"constant", SignalEdge::kZeros},
    {"replicate", SignalEdge::kReplicate},
    {"circular", SignalEdge::kCircular},
}};

template <class Names>
std::vector<std::string_view> names_of(const Names& names) {
  std::vector<std::string_view> out;
  for (const auto& each : names) out.push_back(each.first);
  return out;
}

int64_t integer_or(const Arguments& arguments, std::string_view name, int64_t otherwise) {
  return arguments.is_none(name) ? otherwise : arguments.integer(name);
}

}  // namespace

Param sample_rate_param() {
  return {.name = "sample_rate",
          .type = ParamType::kInt,
          .doc = "Sample rate of the waveform.",
          .fallback = int64_t{16000},
          .minimum = 1,
          .maximum = 1 << 20};
}

Param n_fft_param(int64_t fallback) {
  return {.name = "n_fft",
          .type = ParamType::kInt,
          .doc = "Samples per Fourier transform, which gives n_fft // 2 + 1 bins.",
          .fallback = fallback,
          .minimum = 1,
          .maximum = RealFft::kMaxSamples};
}
Param win_length_param() {
  return {.name = "win_length",
          .type = ParamType::kInt,
          .doc = "Samples in the window, centered in n_fft; None: n_fft.",
          .minimum = 1,
          .maximum = RealFft::kMaxSamples};
}
Param hop_length_param() {
  return {.name = "hop_length",
          .type = ParamType::kInt,
          .doc = "Samples from one frame to the next; None: half the window.",
          .minimum = 1,
          .maximum = 1 << 30};
}

std::vector<Param> frame_params() {
  return {n_fft_param(), win_length_param(), hop_length_param()};
}

Param pad_param() {
  return {.name = "pad",
          .type = ParamType::kInt,
          .doc = "Zeros added to both ends of the waveform first.",
          .fallback = int64_t{0},
          .minimum = 0,
          .maximum = 1 << 30};
}

std::vector<Param> window_params() {
  return {
      {.name = "window_fn",
       .type = ParamType::kString,
       .doc = "Periodic window function, named as in torch.",
       .fallback = std::string("hann_window"),
       .choices = names_of(kWindows)},
      {.name = "power",
       .type = ParamType::kFloat,
       .doc = "2 for powers, 1 for magnitudes.",
       .fallback = 2.0,
       .minimum = 1,
       .maximum = 2},
      {.name = "normalized",
       .type = ParamType::kBool,
       .doc = "Whether spectra are divided by the square root of the sum of the window's squares.",
       .fallback = false},
      {.name = "center",
       .type = ParamType::kBool,
       .doc = "Whether frame t is centered at sample t * hop_length; otherwise it begins there.",
       .fallback = true},
      {.name = "pad_mode",
       .type = ParamType::kString,
       .doc = "With center=True, how both ends are padded.",
       .fallback = std::string("reflect"),
       .choices = names_of(kEdges)}};
}

Spectra spectra_from(std::string_view owner, const Arguments& arguments) {
  const auto n_fft = static_cast<int>(arguments.integer("n_fft"));
  const auto win_length = static_cast<int>(integer_or(arguments, "win_length", n_fft));
  const int64_t hop = integer_or(arguments, "hop_length", win_length / 2);
  const double power = arguments.number("power");
  if (win_length > n_fft) {
    raise_invalid_argument(owner, "win_length is " + std::to_string(win_length) +
                                      ", longer than n_fft, " + std::to_string(n_fft));
  }
  if (hop == 0)
    raise_invalid_argument(owner, "a window of one sample has no default hop (half of it is 0)",
                           "hop_length=1");
  if (power != 1 && power != 2) {
    raise_invalid_argument(owner, "power must be 1 or 2 (got " + text_of(ParamValue(power)) + ")",
                           "use a Python transform for other powers");
  }
  const WindowShape shape = named(kWindows, arguments.text("window_fn"));
  std::vector<float> window = window_of(shape, win_length, true);
  if (arguments.flag("normalized")) {
    double squares = 0;
    for (const float weight : window) squares += double(weight) * double(weight);
    if (squares == 0)
      raise_invalid_argument(owner,
                             "normalized=True would divide by zero: the window is all zeros");
    for (float& weight : window) weight = static_cast<float>(double(weight) / std::sqrt(squares));
  }
  const bool center = arguments.flag("center");
  const SignalEdge edge = center ? named(kEdges, arguments.text("pad_mode")) : SignalEdge::kZeros;
  return {.frames = {.fft = RealFft(n_fft),
                     .window = std::move(window),
                     .window_at = (n_fft - win_length) / 2,
                     .hop = hop,
                     .before = center ? n_fft / 2 : 0,
                     .edge = edge,
                     .zeros = arguments.has("pad") ? arguments.integer("pad") : 0},
          .magnitude = power == 1,
          .reflects = edge == SignalEdge::kReflect};
}

std::string why_not_mirrored(const Spectra& spectra, int64_t frames) {
  if (frames < 0) return {};
  const SpectralFrames& how = spectra.frames;
  const int64_t whole = frames + 2 * how.zeros;
  if (spectra.reflects && whole <= how.before) {
    return "has " + std::to_string(frames) + " frames, but " + std::to_string(how.before) +
           " are mirrored at its ends (center=True): pad_mode=\"constant\", pad=, or longer audio "
           "clips";
  }
  if (how.frames_of(frames) == 0) {
    return "has " + std::to_string(frames) + " frames, fewer than the " +
           std::to_string(how.fft.length) + " of a transform";
  }
  return {};
}

std::vector<Param> mel_params() {
  return {{.name = "n_mels",
           .type = ParamType::kInt,
           .doc = "Number of filters.",
           .fallback = int64_t{128},
           .minimum = 1,
           .maximum = 4096},
          {.name = "f_min",
           .type = ParamType::kFloat,
           .doc = "Start of the first filter, in Hz.",
           .fallback = 0.0,
           .minimum = 0,
           .maximum = 1 << 20},
          {.name = "f_max",
           .type = ParamType::kFloat,
           .doc = "End of the last filter, in Hz; None: half the sample rate.",
           .minimum = 0,
           .maximum = 1 << 20},
          {.name = "norm",
           .type = ParamType::kString,
           .doc = "\"slaney\": each filter is divided by half its width in Hz.",
           .choices = {"slaney"}},
          {.name = "mel_scale",
           .type = ParamType::kString,
           .doc = "Mel scale: HTK's, logarithmic throughout, or Slaney's, linear up to 1 kHz.",
           .fallback = std::string("htk"),
           .choices = {"htk", "slaney"}}};
}

SparseRows mel_filters_from(std::string_view owner, const Arguments& arguments, int bins,
                            std::string_view norm) {
  const auto rate = static_cast<double>(arguments.integer("sample_rate"));
  const double lowest = arguments.number("f_min");
  const double highest =
      arguments.is_none("f_max") ? std::floor(rate / 2) : arguments.number("f_max");
  if (lowest >= highest) {
    raise_invalid_argument(owner, "f_min must be below f_max (got " + text_of(ParamValue(lowest)) +
                                      " and " + text_of(ParamValue(highest)) + ")");
  }
  const MelFilters how{.count = static_cast<int>(arguments.integer("n_mels")),
                       .bins = bins,
                       .sample_rate = rate,
                       .lowest = lowest,
                       .highest = highest,
                       .slaney_scale = arguments.text("mel_scale") == "slaney",
                       .slaney_norm = !arguments.is_none(norm)};
  // Slaney's scale and norm are librosa's default, whose filters are computed in float64.
  const bool librosa = how.slaney_scale && how.slaney_norm;
  return librosa ? exact_mel_filters(how) : torchaudio_mel_filters(how);
}

}  // namespace headrace
