// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/pace.h"

#include <algorithm>
#include <bit>

namespace headrace {

double Backoff::next(double chance, std::optional<double> asked) {
  last_ = std::min(longest_, first_ + chance * std::max(3 * last_ - first_, 0.0));
  return asked ? std::max(*asked, last_) : last_;
}

void RequestLimit::set_most(int most) { most_ = most; }

void RequestLimit::throttled(double time) {
  // The answers to requests that were sent together count as one signal, not many.
  if (!cut_ || time - *cut_ >= 1) allowed_ = std::max(1.0, std::min(most_, allowed_) / 2);
  if (!cut_ || time - *cut_ >= 1) cut_ = time;
  grown_ = time;
}

void RequestLimit::all_in_use(double time) {
  if (!cut_ || allowed_ >= most_ || time - *grown_ < 1) return;
  allowed_ = std::min(most_, allowed_ + 1);
  grown_ = time;
}

size_t Hedges::class_of(uint64_t bytes) { return static_cast<size_t>(std::bit_width(bytes)); }

void Hedges::took(uint64_t bytes, double seconds) {
  SizeClass& kept = classes_[class_of(bytes)];
  if (kept.seconds.size() < kKept) {
    kept.seconds.push_back(static_cast<float>(seconds));
  } else {
    kept.seconds[kept.count % kKept] = static_cast<float>(seconds);
  }
  if (++kept.count % kEach != 0 && kept.count != kMin) return;
  std::vector<float> sorted = kept.seconds;
  std::ranges::sort(sorted);
  const double median = sorted[sorted.size() / 2];
  const double slowest = sorted[std::min(sorted.size() - 1, sorted.size() * 99 / 100)];
  kept.after = std::max({least_, 3 * median, slowest});
}

double Hedges::after(uint64_t bytes) const {
  const SizeClass& kept = classes_[class_of(bytes)];
  if (kept.count >= kMin) return kept.after;
  // Whole files of unknown size are a separate class.
  const double unsized = bytes == UINT64_MAX ? 1 : static_cast<double>(bytes) / kUnknownRate;
  double out = std::max(least_, kUnknownSeconds + unsized);
  for (const SizeClass& other : classes_) {
    if (other.count >= kMin) out = std::max(out, other.after);
  }
  return out;
}

bool Hedges::take() {
  if (budget_ < 1) return false;
  budget_ -= 1;
  return true;
}

}  // namespace headrace
