// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/spectral/resamplers.h"

namespace headrace {

std::string too_uneven(const ResampleSettings& settings) {
  constexpr int64_t kMostWeights = 1 << 22;
  if (AudioResampler::weights_of(settings) <= kMostWeights) return {};
  return "would go from " + std::to_string(settings.orig_freq) + " to " +
         std::to_string(settings.new_freq) +
         " Hz, which have no large common divisor: the filter would take more than " +
         std::to_string(kMostWeights) + " weights";
}

ResampleSettings Resamplers::with_rates(int from, int to) const {
  ResampleSettings settings = settings_;
  settings.orig_freq = from;
  settings.new_freq = to;
  return settings;
}

std::shared_ptr<const AudioResampler> Resamplers::between(int from, int to) const {
  if (from == to) return nullptr;
  constexpr size_t kMost = 64;
  MutexLock lock(mutex_);
  const auto found = made_.find({from, to});
  if (found != made_.end()) return found->second;
  if (made_.size() >= kMost) made_.clear();
  return made_[{from, to}] = std::make_shared<const AudioResampler>(with_rates(from, to));
}

}  // namespace headrace
