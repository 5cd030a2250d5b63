// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/patches/sequence_size.h"

#include <algorithm>
#include <cmath>

namespace headrace {
namespace {

PatchedSize scaled_to_patches(const Sequence& sequence, int64_t height, int64_t width,
                              double ratio) {
  const auto edge = [&](int64_t from) {
    const auto patch = static_cast<double>(sequence.patch);
    const double patches = std::ceil(static_cast<double>(from) * ratio / patch);
    return sequence.patch * std::max<int64_t>(1, static_cast<int64_t>(patches));
  };
  return {edge(height), edge(width)};
}

}  // namespace

// timm's get_image_size_for_seq, step by step: the result depends on where its search ends.
PatchedSize size_for_sequence(const Sequence& sequence, int64_t height, int64_t width) {
  constexpr double kPrecision = 1e-5;
  double low = kPrecision / 10, high = 100;
  while (high - low >= kPrecision) {
    const double middle = (low + high) / 2;
    const PatchedSize size = scaled_to_patches(sequence, height, width, middle);
    // Edges in a header can be so long that their product overflows int64.
    const double patches = static_cast<double>(size.height / sequence.patch) *
                           static_cast<double>(size.width / sequence.patch);
    (patches <= static_cast<double>(sequence.patches) ? low : high) = middle;
  }
  return scaled_to_patches(sequence, height, width, std::min(low, sequence.ratio_at_most));
}

Param sequence_patch_param() {
  return {.name = "patch_size",
          .type = ParamType::kInt,
          .doc = "Edge of a square patch, in pixels.",
          .fallback = int64_t{16},
          .minimum = 1,
          .maximum = 4096};
}

Param max_seq_len_param() {
  return {.name = "max_seq_len",
          .type = ParamType::kInt,
          .doc = "Maximum number of patches per image.",
          .fallback = int64_t{1024},
          .minimum = 1,
          .maximum = 1 << 24};
}

}  // namespace headrace
