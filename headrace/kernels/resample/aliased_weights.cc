// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/resample/aliased_weights.h"

#include <algorithm>
#include <cmath>

namespace headrace {
namespace {

// The weight at a distance from the output's position, in inputs.
double aliased_filter(Filter filter, double x) {
  x = std::abs(x);
  if (filter == Filter::kBilinearAliased) return x < 1 ? 1 - x : 0;
  constexpr double a = -0.75;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

}  // namespace

AliasedTaps aliased_taps(Filter filter, int input, int output, int at) {
  const int taps = filter == Filter::kBilinearAliased ? 2 : 4, half = taps / 2;
  const double scale = static_cast<double>(input) / output;
  double place = scale * (at + 0.5) - 0.5;
  if (filter == Filter::kBilinearAliased) place = std::max(place, 0.0);
  // torch rounds to float32 here, which can round up to the next input for positions just below it.
  const int before = std::min(static_cast<int>(std::floor(static_cast<float>(place))), input - 1);
  const double part = std::clamp(place - before, 0.0, 1.0);
  const int first = before - half + 1;
  AliasedTaps out{.first = std::max(first, 0), .weight = {}};
  out.count = std::min(first + taps, input) - out.first;
  for (int t = 0; t < taps; ++t) {
    double& weight = out.weight[size_t(std::clamp(first + t, 0, input - 1) - out.first)];
    weight += aliased_filter(filter, t + 1 - half - part);
    out.largest = std::max(out.largest, weight);
  }
  return out;
}

int aliased_precision(Filter filter, int input, int output) {
  double most = 0;
  for (int at = 0; at < output; ++at) {
    most = std::max(most, aliased_taps(filter, input, output, at).largest);
  }
  int precision = 0;
  while (precision < 22 && static_cast<int>(0.5 + most * (1 << (precision + 1))) < 1 << 15) {
    ++precision;
  }
  return precision;
}

int32_t aliased_weight(double weight, int precision) {
  const double scaled = weight * (1 << precision);
  return static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5) * (1 << (22 - precision));
}

}  // namespace headrace
