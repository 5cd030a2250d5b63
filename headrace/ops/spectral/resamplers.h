// SPDX-License-Identifier: Apache-2.0
// Resampling filters, each made when a record first needs it, because files of a dataset differ in
// sample rate. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/kernels/audio/resample_audio.h"

namespace headrace {

// Why there is no filter for the ratio; "" if there is one.
inline std::string unsupported_rate_ratio(const ResampleSettings& settings) {
  constexpr int64_t kMaxWeights = 1 << 22;
  if (AudioResampler::weight_count(settings) <= kMaxWeights) return {};
  return "would go from " + std::to_string(settings.orig_freq) + " to " +
         std::to_string(settings.new_freq) +
         " Hz, which have no large common divisor: the filter would take more than " +
         std::to_string(kMaxWeights) + " weights";
}

class Resamplers {
 public:
  // Settings except the rates.
  explicit Resamplers(const ResampleSettings& settings = {}) : settings_(settings) {}

  std::string refusal(int from, int to) const {
    return unsupported_rate_ratio(with_rates(from, to));
  }
  // Null if the rates are the same. Shared, because it may be evicted while in use. REQUIRES:
  // unsupported_rate_ratio() is empty.
  std::shared_ptr<const AudioResampler> between(int from, int to) const EXCLUDES_LOCK(mutex_);

 private:
  ResampleSettings with_rates(int from, int to) const;

  const ResampleSettings settings_;
  mutable Mutex mutex_;
  mutable std::map<std::pair<int, int>, std::shared_ptr<const AudioResampler>> made_
      GUARDED_BY(mutex_);
};

inline ResampleSettings Resamplers::with_rates(int from, int to) const {
  ResampleSettings settings = settings_;
  settings.orig_freq = from;
  settings.new_freq = to;
  return settings;
}

inline std::shared_ptr<const AudioResampler> Resamplers::between(int from, int to) const {
  if (from == to) return nullptr;
  constexpr size_t kMax = 64;
  MutexLock lock(mutex_);
  const auto found = made_.find({from, to});
  if (found != made_.end()) return found->second;
  if (made_.size() >= kMax) made_.clear();
  return made_[{from, to}] = std::make_shared<const AudioResampler>(with_rates(from, to));
}

}  // namespace headrace
