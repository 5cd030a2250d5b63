// SPDX-License-Identifier: Apache-2.0
// Interpolation filters, named like torchvision's InterpolationMode, with Pillow's weights.
#pragma once

#include <cstdint>

#include "headrace/base/host_device_function.h"

namespace headrace {

enum class Filter : uint8_t {
  kNearest,
  kBilinear,
  kBicubic,
  kBox,
  kHamming,
  kLanczos,
  // antialias=False, as torch resizes tensors. Its "nearest" and "nearest-exact":
  kNearestTorch,
  kNearestExactTorch,
  // Interpolates between two or four neighbors, however much the picture shrinks (Note [Weights
  // without antialiasing] in resample.cc).
  kBilinearNoAntialias,
  kBicubicNoAntialias,
};
constexpr bool is_without_antialias(Filter filter) {
  return filter >= Filter::kBilinearNoAntialias;
}
// Outputs are copies of inputs.
constexpr bool is_nearest(Filter filter) {
  return filter == Filter::kNearest || filter == Filter::kNearestTorch ||
         filter == Filter::kNearestExactTorch;
}

// The rest is the geometry of a full resize of one axis, like Pillow's precompute_coeffs. Code that
// only needs the four basic operations, which all processors round alike, is compiled for GPUs,
// too.

// The inputs of one output: [first, first + count), around `center`.
struct FilterSpan {
  int first = 0, count = 0;
  double center = 0;
};

// Shared by the integer and the float tables. REQUIRES: filter is not nearest-neighbor.
struct FilterScale {
  FilterScale() = default;
  HEADRACE_HD FilterScale(Filter filter, int input, int output)
      : filter(filter),
        input(input),
        outputs(output),
        // Pillow stores boxes as float32, so sizes above 2^24 are rounded as they are there.
        scale(static_cast<double>(static_cast<float>(input)) / output) {
    const double stretch = scale > 1.0 ? scale : 1.0;
    support = support_of(filter) * stretch;
    inverse = 1.0 / stretch;
  }

  // For any filter; torch's filters without antialiasing have no center.
  FilterSpan span(int output) const;
  // REQUIRES: !is_without_antialias(filter).
  HEADRACE_HD FilterSpan antialiased_span(int output) const {
    FilterSpan span;
    span.center = (output + 0.5) * scale;
    const int first = static_cast<int>(span.center - support + 0.5);
    const int end = static_cast<int>(span.center + support + 0.5);
    span.first = first > 0 ? first : 0;
    span.count = (end < input ? end : input) - span.first;
    return span;
  }

  Filter filter = Filter::kBilinear;
  int input = 1, outputs = 1;
  double scale = 1, support = 1, inverse = 1;  // inverse: 1 / the filter's stretch factor

 private:
  HEADRACE_HD static double support_of(Filter filter) {
    if (filter == Filter::kBox) return 0.5;
    if (filter == Filter::kBicubic) return 2.0;
    return filter == Filter::kLanczos ? 3.0 : 1.0;
  }
};

// Filters whose weights are polynomials.
constexpr bool is_polynomial(Filter filter) {
  return filter == Filter::kBox || filter == Filter::kBilinear || filter == Filter::kBicubic;
}
// The filter at x, same as filter_weight(). REQUIRES: is_polynomial(filter).
HEADRACE_HD inline double polynomial_weight(Filter filter, double x) {
  if (filter == Filter::kBox) return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
  x = x < 0.0 ? -x : x;
  if (filter == Filter::kBilinear) return x < 1.0 ? 1.0 - x : 0.0;
  constexpr double a = -0.5;
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

}  // namespace headrace
