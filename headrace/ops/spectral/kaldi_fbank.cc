// SPDX-License-Identifier: Apache-2.0
// KaldiFbank: log mel filter bank features as Kaldi computes them, one row per frame.
#include <bit>

#include "headrace/base/random.h"
#include "headrace/base/registry.h"
#include "headrace/kernels/audio/mel_filters.h"
#include "headrace/kernels/audio/spectra.h"
#include "headrace/kernels/audio/window.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/spectral/spectral_op.h"

namespace headrace {
namespace {

constexpr float kEpsilon = 1.1920928955078125e-07f;

class KaldiFbank final : public SpectralOp {
 public:
  explicit KaldiFbank(const Arguments& arguments)
      : SpectralOp("KaldiFbank", Takes::kWaveform,
                   static_cast<int>(arguments.number("sample_frequency"))),
        channel_(arguments.integer("channel")),
        snips_(arguments.flag("snip_edges")),
        takes_energy_(arguments.flag("use_energy")),
        energy_last_(arguments.flag("htk_compat")),
        raw_energy_(arguments.flag("raw_energy")),
        min_energy_(arguments.number("energy_floor")),
        takes_logarithm_(arguments.flag("use_log_fbank")),
        takes_power_(arguments.flag("use_power")),
        subtracts_mean_(arguments.flag("subtract_mean")),
        frames_(frames_from(arguments)),
        filters_(filters_from(arguments, frames_.fft.length)) {}

 private:
  static SpectralFrames frames_from(const Arguments& arguments) {
    constexpr double kSecondsPerMillisecond = 0.001;
    const double rate = arguments.number("sample_frequency");
    const double hop = rate * arguments.number("frame_shift") * kSecondsPerMillisecond;
    const double window = rate * arguments.number("frame_length") * kSecondsPerMillisecond;
    const double most = RealFft::kMaxSamples;
    if (!(hop >= 1) || hop > most || !(window >= 2) || window > most) {
      raise_invalid_argument("KaldiFbank", "a frame must have 2 to " +
                                               std::to_string(RealFft::kMaxSamples) +
                                               " samples, and the frame shift at least one");
    }
    const auto size = static_cast<int>(window);
    const auto padded = arguments.flag("round_to_power_of_two")
                            ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(size)))
                            : size;
    if (padded % 2 != 0) {
      raise_invalid_argument("KaldiFbank",
                             "a frame of " + std::to_string(size) + " samples must be even",
                             "round_to_power_of_two=True, or another frame_length");
    }
    constexpr std::pair<std::string_view, WindowShape> kShapes[] = {
        {"povey", WindowShape::kPovey},
        {"hanning", WindowShape::kHann},
        {"hamming", WindowShape::kHamming},
        {"rectangular", WindowShape::kRectangular},
        {"blackman", WindowShape::kBlackman}};
    WindowShape shape = WindowShape::kPovey;
    for (const auto& [name, each] : kShapes) {
      if (name == arguments.text("window_type")) shape = each;
    }
    const auto shift = static_cast<int64_t>(hop);
    const bool snips = arguments.flag("snip_edges");
    return {.fft = RealFft(padded),
            .window = window_of(shape, size, false, arguments.number("blackman_coeff")),
            .hop = shift,
            .before = snips ? 0 : size / 2 - shift / 2,
            .edge = SignalEdge::kSymmetric,
            .conditioning = FrameConditioning{
                .remove_mean = arguments.flag("remove_dc_offset"),
                .preemphasis = static_cast<float>(arguments.number("preemphasis_coefficient"))}};
  }

  static SparseRows filters_from(const Arguments& arguments, int samples) {
    const double rate = arguments.number("sample_frequency"), half = rate / 2;
    const double lowest = arguments.number("low_freq");
    double highest = arguments.number("high_freq");
    if (highest <= 0) highest += half;
    if (!(lowest < highest) || !(highest <= half)) {
      raise_invalid_argument("KaldiFbank",
                             "low_freq must be below high_freq, and high_freq at most half the "
                             "sample rate (got " +
                                 text_of(ParamValue(lowest)) + " and " +
                                 text_of(ParamValue(highest)) + " of " + text_of(ParamValue(rate)) +
                                 ")");
    }
    return kaldi_mel_filters(static_cast<int>(arguments.integer("num_mel_bins")), samples, rate,
                             lowest, highest);
  }

  int64_t rows_of(int64_t samples) const {
    if (samples < 0) return -1;
    const int64_t size = std::ssize(frames_.window);
    if (samples < size) return 0;  // reported by misfit()
    return snips_ ? 1 + (samples - size) / frames_.hop : (samples + frames_.hop / 2) / frames_.hop;
  }
  int64_t columns() const { return filters_.size() + (takes_energy_ ? 1 : 0); }

  Shape shape_after(const Shape& shape) const override { return {rows_of(shape[1]), columns()}; }
  std::string misfit(const Shape& shape) const override {
    if (channel_ < 0 && shape[0] > 1) {
      return "has " + std::to_string(shape[0]) + " channels: channel=0 takes the first of them";
    }
    if (channel_ >= 0 && shape[0] >= 0 && channel_ >= shape[0]) {
      return "has " + std::to_string(shape[0]) + " channels, and no channel " +
             std::to_string(channel_);
    }
    if (shape[1] < 0 || rows_of(shape[1]) > 0) return {};
    return "has " + std::to_string(shape[1]) + " frames, fewer than the " +
           std::to_string(frames_.window.size()) + " of one window";
  }

  void compute(const At&, const float* in, const Shape& shape, float* out) const override {
    const FrameKernels& kernels = frame_kernels();
    const int64_t samples = shape[1], rows = rows_of(samples), width = columns();
    const int bins = frames_.fft.bins(), lanes = kernels.lanes;
    const int64_t first = takes_energy_ && !energy_last_ ? 1 : 0;
    const int64_t energy_at = energy_last_ ? filters_.size() : 0;
    Buffer made(static_cast<size_t>(filters_.size() * lanes) * sizeof(float));
    Buffer rooted(static_cast<size_t>(bins * lanes) * sizeof(float));
    auto* const sums = reinterpret_cast<float*>(made.data());
    auto* const roots = reinterpret_cast<float*>(rooted.data());
    SpectralScratch scratch;
    const float* const channel = in + std::max<int64_t>(channel_, 0) * samples;
    scratch.each_block(frames_, channel, samples, rows, [&](const SpectralBlock& block) {
      const float* spectra = block.powers;
      if (!takes_power_) {
        kernels.roots(spectra, int64_t{bins} * lanes, roots);
        spectra = roots;
      }
      kernels.weigh(filters_, spectra, lanes, lanes, sums, lanes);
      if (takes_logarithm_) kernels.logarithms(sums, filters_.size() * lanes, kEpsilon, sums);
      float* const to = out + block.first * width;
      kernels.scatter(sums, lanes, static_cast<int>(filters_.size()), block.frames, width,
                      to + first);
      for (int l = 0; takes_energy_ && l < block.frames; ++l) {
        const float energy = raw_energy_ ? block.raw_energies[l] : block.energies[l];
        to[l * width + energy_at] = log_energy(energy);
      }
    });
    if (subtracts_mean_) subtract_means(rows, width, out);
  }

  float log_energy(float energy) const {
    const double log = portable_log(static_cast<double>(std::max(energy, kEpsilon)));
    const double floor = min_energy_ > 0 ? portable_log(min_energy_) : log;
    return static_cast<float>(std::max(log, floor));
  }

  static void subtract_means(int64_t rows, int64_t width, float* out) {
    for (int64_t column = 0; column < width; ++column) {
      double total = 0;
      for (int64_t row = 0; row < rows; ++row) total += double(out[row * width + column]);
      const auto mean = static_cast<float>(total / static_cast<double>(rows));
      for (int64_t row = 0; row < rows; ++row) out[row * width + column] -= mean;
    }
  }

  const int64_t channel_;
  const bool snips_, takes_energy_, energy_last_, raw_energy_;
  const double min_energy_;
  const bool takes_logarithm_, takes_power_, subtracts_mean_;
  const SpectralFrames frames_;
  const SparseRows filters_;
};

Param number_param(std::string_view name, std::string_view doc, double fallback, double minimum,
                   double maximum) {
  return {.name = name,
          .type = ParamType::kFloat,
          .doc = doc,
          .fallback = fallback,
          .minimum = minimum,
          .maximum = maximum};
}
Param flag_param(std::string_view name, std::string_view doc, bool fallback) {
  return {.name = name, .type = ParamType::kBool, .doc = doc, .fallback = fallback};
}

const OpRecord kKaldiFbank{
    .name = "KaldiFbank",
    .doc =
        "Kaldi's filter bank features of a waveform, without its dither.\n\n"
        "A waveform, float32 (channels, frames), becomes (rows, num_mel_bins), one row per frame, "
        "plus one column with use_energy=True: 1 + (frames - window) // shift rows with "
        "snip_edges, else (frames + shift // 2) // shift, mirrored at the ends. A waveform shorter "
        "than a window, or one of several channels without channel=, is a data error (HR0545). "
        "Kaldi's own programs expect 16-bit integer samples: multiply by 32768 to get the same "
        "values.",
    .page = {.unseen = "it works on audio: [audio features](audio-features.md)"},
    .params =
        {number_param("blackman_coeff", "Coefficient of the \"blackman\" window.", 0.42, 0, 1),
         {.name = "channel",
          .type = ParamType::kInt,
          .doc = "Channel to use; -1: the only one.",
          .fallback = int64_t{-1},
          .minimum = -1,
          .maximum = 1 << 20},
         number_param("energy_floor", "Minimum energy, before its logarithm; 0: none.", 1.0, 0,
                      1e30),
         number_param("frame_length", "Window length in milliseconds.", 25.0, 0, 1e7),
         number_param("frame_shift", "Hop from one window to the next, in milliseconds.", 10.0, 0,
                      1e7),
         number_param(
             "high_freq",
             "End of the last filter, in Hz; 0 or negative: relative to half the sample rate.", 0.0,
             -1e6, 1e6),
         flag_param("htk_compat",
                    "Whether the energy is the last column instead of the first (as in HTK).",
                    false),
         number_param("low_freq", "Start of the first filter, in Hz.", 20.0, 0, 1e6),
         {.name = "num_mel_bins",
          .type = ParamType::kInt,
          .doc = "Number of filters.",
          .fallback = int64_t{23},
          .minimum = 4,
          .maximum = 4096},
         number_param("preemphasis_coefficient", "Fraction of the previous sample to subtract.",
                      0.97, 0, 1),
         flag_param("raw_energy", "Whether energies are computed before preemphasis and windowing.",
                    true),
         flag_param("remove_dc_offset", "Whether the mean of each window is subtracted.", true),
         flag_param("round_to_power_of_two", "Whether frames are zero-padded to a power of two.",
                    true),
         number_param("sample_frequency", "Sample rate of the waveform.", 16000.0, 1, 1 << 20),
         flag_param("snip_edges",
                    "Whether only frames that fit completely into the waveform are used.", true),
         flag_param("subtract_mean", "Whether each column's mean over the record is subtracted.",
                    false),
         flag_param("use_energy",
                    "Whether to add a column with the logarithm of each window's energy.", false),
         flag_param("use_log_fbank", "Whether logarithms are taken.", true),
         flag_param("use_power",
                    "Whether filters are applied to the power spectrum instead of the magnitude "
                    "spectrum.",
                    true),
         {.name = "window_type",
          .type = ParamType::kString,
          .doc = "The window; \"povey\" is the Hann window to the power of 0.85.",
          .fallback = std::string("povey"),
          .choices = {"povey", "hanning", "hamming", "rectangular", "blackman"}}},
    .oracle =
        "torchaudio.compliance.kaldi.fbank with dither=0, within 1e-3 for values at most 60 dB "
        "below the frame's largest",
    .example = {{"high_freq", -400.0},
                {"htk_compat", true},
                {"subtract_mean", true},
                {"use_energy", true},
                {"channel", int64_t{1}}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<KaldiFbank>(arguments);
    }};
const Register<OpRecord> registered_kaldi_fbank(kKaldiFbank);

}  // namespace
}  // namespace headrace
