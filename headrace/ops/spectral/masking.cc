// SPDX-License-Identifier: Apache-2.0
// TimeMasking and FrequencyMasking: set a range of a spectrogram's frames, or of its bins, to 0.
#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/ops/spectral/spectral_op.h"

namespace headrace {
namespace {

class Masking final : public SpectralOp {
 public:
  Masking(std::string_view name, size_t axis, int64_t most, bool each, double share)
      : SpectralOp(name, Takes::kSpectrogram),
        axis_(axis),
        most_(most),
        each_channel_(each),
        share_(share) {}

 private:
  bool in_place(const At&) const override { return true; }

  struct Stretch {
    int64_t begin, end;
  };
  // torchaudio's formula, including its order of truncations.
  Stretch draw(int64_t extent, Draws& draws) const {
    const double width_drawn = draws.uniform(), place_drawn = draws.uniform();
    int64_t most = most_;
    if (share_ < 1) {
      most = std::min(most, static_cast<int64_t>(static_cast<double>(extent) * share_));
    }
    const double width = width_drawn * static_cast<double>(most);
    const double place = place_drawn * (static_cast<double>(extent) - width);
    const auto begin = static_cast<int64_t>(place);
    const int64_t end = begin + static_cast<int64_t>(width);
    return {std::clamp<int64_t>(begin, 0, extent), std::clamp<int64_t>(end, 0, extent)};
  }

  void compute(const At& at, const float* in, const Shape& shape, float* out) const override {
    const int64_t bins = shape[1], frames = shape[2];
    if (in != out) std::copy_n(in, element_count(shape), out);
    Stretch stretch{};
    Draws draws = at.draws;
    for (int64_t c = 0; c < shape[0]; ++c) {
      if (c == 0 || each_channel_) stretch = draw(shape[axis_], draws);
      if (stretch.begin >= stretch.end) continue;
      float* const channel = out + c * bins * frames;
      if (axis_ == 1) {
        std::fill(channel + stretch.begin * frames, channel + stretch.end * frames, 0.0f);
        continue;
      }
      for (int64_t k = 0; k < bins; ++k) {
        std::fill(channel + k * frames + stretch.begin, channel + k * frames + stretch.end, 0.0f);
      }
    }
  }

  const size_t axis_;
  const int64_t most_;
  const bool each_channel_;
  const double share_;
};

Param mask_param(std::string_view name, std::string_view doc) {
  return {.name = name,
          .type = ParamType::kInt,
          .doc = doc,
          .required = true,
          .minimum = 0,
          .maximum = 1 << 30};
}
Param iid_masks_param() {
  return {.name = "iid_masks",
          .type = ParamType::kBool,
          .doc = "Whether each channel has its own mask, instead of one per record.",
          .fallback = false};
}

const OpRecord kTimeMasking{
    .name = "TimeMasking",
    .doc =
        "Sets a random range of a spectrogram's frames to 0 (SpecAugment's time mask).\n\n"
        "A spectrogram, float32 (channels, bins, frames), keeps its shape. The width is uniform "
        "from 0 to time_mask_param, the position uniform over where it fits.",
    .page = {.unseen = "it works on audio: [audio features](audio-features.md)"},
    .params = {mask_param("time_mask_param", "Exclusive upper bound of a mask's width, in frames."),
               iid_masks_param(),
               {.name = "p",
                .type = ParamType::kFloat,
                .doc = "Maximum fraction of frames to mask.",
                .fallback = 1.0,
                .minimum = 0,
                .maximum = 1}},
    .oracle = "torchaudio.transforms.TimeMasking, in distribution",
    .example = {{"time_mask_param", int64_t{9}}, {"iid_masks", true}, {"p", 0.8}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<Masking>("TimeMasking", 2, arguments.integer("time_mask_param"),
                                       arguments.flag("iid_masks"), arguments.number("p"));
    }};
const Register<OpRecord> registered_time_masking(kTimeMasking);

const OpRecord kFrequencyMasking{
    .name = "FrequencyMasking",
    .doc =
        "Sets a random range of a spectrogram's bins to 0 (SpecAugment's frequency mask).\n\n"
        "A spectrogram, float32 (channels, bins, frames), keeps its shape. The width is uniform "
        "from 0 to freq_mask_param, the position uniform over where it fits.",
    .page = {.unseen = "it works on audio: [audio features](audio-features.md)"},
    .params = {mask_param("freq_mask_param", "Exclusive upper bound of a mask's width, in bins."),
               iid_masks_param()},
    .oracle = "torchaudio.transforms.FrequencyMasking, in distribution",
    .example = {{"freq_mask_param", int64_t{5}}, {"iid_masks", true}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<Masking>("FrequencyMasking", 1, arguments.integer("freq_mask_param"),
                                       arguments.flag("iid_masks"), 1.0);
    }};
const Register<OpRecord> registered_frequency_masking(kFrequencyMasking);

}  // namespace
}  // namespace headrace
