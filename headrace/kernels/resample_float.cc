// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/resample_float.h"

#include "headrace/kernels/resample.h"

namespace headrace {
namespace {

// The normalized weights of one output.
struct Weights {
  int first = 0;
  std::vector<double> of_tap;
};

std::vector<Weights> weights_of(Filter filter, int input, int output) {
  const FilterScale scale(filter, input, output);
  std::vector<Weights> all(output);
  for (int i = 0; i < output; ++i) {
    const FilterSpan span = scale.span(i);
    all[i].first = span.first;
    all[i].of_tap.resize(span.count);
    double sum = 0;
    for (int t = 0; t < span.count; ++t) {
      const double x = t + span.first - span.center + 0.5;
      sum += all[i].of_tap[t] = filter_weight(filter, x * scale.inverse);
    }
    if (sum == 0) continue;
    for (double& weight : all[i].of_tap) weight /= sum;
  }
  return all;
}

FloatPlane horizontal(const FloatPlane& in, Filter filter, int to_width) {
  const std::vector<Weights> weights = weights_of(filter, in.width, to_width);
  FloatPlane out(to_width, in.height);
  for (int y = 0; y < in.height; ++y) {
    for (int x = 0; x < to_width; ++x) {
      const float* const samples = in.row(y) + weights[x].first;
      double sum = 0;
      for (size_t t = 0; t < weights[x].of_tap.size(); ++t)
        sum += samples[t] * weights[x].of_tap[t];
      out.row(y)[x] = static_cast<float>(sum);
    }
  }
  return out;
}

FloatPlane vertical(const FloatPlane& in, Filter filter, int to_height) {
  const std::vector<Weights> weights = weights_of(filter, in.height, to_height);
  FloatPlane out(in.width, to_height);
  for (int y = 0; y < to_height; ++y) {
    for (int x = 0; x < in.width; ++x) {
      double sum = 0;
      for (size_t t = 0; t < weights[y].of_tap.size(); ++t) {
        sum += in.row(weights[y].first + static_cast<int>(t))[x] * weights[y].of_tap[t];
      }
      out.row(y)[x] = static_cast<float>(sum);
    }
  }
  return out;
}

FloatPlane nearest(const FloatPlane& in, int to_width, int to_height) {
  const std::vector<int32_t> columns = nearest_samples(in.width, to_width);
  const std::vector<int32_t> rows = nearest_samples(in.height, to_height);
  FloatPlane out(to_width, to_height);
  for (int y = 0; y < to_height; ++y) {
    for (int x = 0; x < to_width; ++x) out.row(y)[x] = in.row(rows[y])[columns[x]];
  }
  return out;
}

}  // namespace

FloatPlane resample(const FloatPlane& plane, Filter filter, int to_width, int to_height) {
  if (filter == Filter::kNearest) return nearest(plane, to_width, to_height);
  const bool wide = plane.width != to_width, high = plane.height != to_height;
  if (!wide && !high) return plane;
  if (!high) return horizontal(plane, filter, to_width);
  if (!wide) return vertical(plane, filter, to_height);
  if (vertical_first(plane.width, plane.height, to_width, to_height)) {
    return horizontal(vertical(plane, filter, to_height), filter, to_width);
  }
  return vertical(horizontal(plane, filter, to_width), filter, to_height);
}

}  // namespace headrace
