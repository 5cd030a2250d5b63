// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/audio/padded_signal.h"

#include <algorithm>
#include <cstddef>

namespace headrace {
namespace {

// Index i of a signal repeated forever in both directions with this period.
int64_t in_period(int64_t i, int64_t period) {
  const int64_t rest = i % period;
  return rest < 0 ? rest + period : rest;
}

}  // namespace

float PaddedSignal::at(int64_t i) const {
  const int64_t whole = length();
  if (i < 0 || i >= whole) {
    switch (edge_) {
      case SignalEdge::kZeros:
        return 0;
      case SignalEdge::kReflect:
        i = whole == 1 ? 0 : in_period(i, 2 * whole - 2);
        i = std::min(i, 2 * whole - 2 - i);
        break;
      case SignalEdge::kSymmetric:
        i = in_period(i, 2 * whole);
        i = std::min(i, 2 * whole - 1 - i);
        break;
      case SignalEdge::kReplicate:
        i = std::clamp<int64_t>(i, 0, whole - 1);
        break;
      case SignalEdge::kCircular:
        i = in_period(i, whole);
        break;
    }
  }
  i -= zeros_;
  return i < 0 || i >= length_ ? 0 : samples_[i];
}

const float* PaddedSignal::stretch(int64_t begin, int64_t count, int64_t wanted) {
  const int64_t first = begin - zeros_;  // in the samples
  if (first >= 0 && first + count <= length_) return samples_ + first;
  made_.assign(static_cast<size_t>(count), 0.0f);
  const int64_t inner = std::clamp<int64_t>(-first, 0, wanted);
  const int64_t outer = std::clamp<int64_t>(length_ - first, inner, wanted);
  for (int64_t i = 0; i < inner; ++i) made_[static_cast<size_t>(i)] = at(begin + i);
  std::copy_n(samples_ + first + inner, outer - inner, made_.begin() + inner);
  for (int64_t i = outer; i < wanted; ++i) made_[static_cast<size_t>(i)] = at(begin + i);
  return made_.data();
}

}  // namespace headrace
