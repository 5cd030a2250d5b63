// SPDX-License-Identifier: Apache-2.0
// Filters between sample rates, made when a record first needs them: files of a dataset differ in
// rate. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/kernels/audio/resample_audio.h"

namespace headrace {

// Why there is no filter for the ratio; "" if there is one.
std::string too_uneven(const ResampleSettings& settings);

class Resamplers {
 public:
  // Settings except the rates.
  explicit Resamplers(const ResampleSettings& settings = {}) : settings_(settings) {}

  std::string refusal(int from, int to) const { return too_uneven(with_rates(from, to)); }
  // Null if the rates are the same. Shared, because it may be evicted while in use. REQUIRES:
  // too_uneven() is empty.
  std::shared_ptr<const AudioResampler> between(int from, int to) const EXCLUDES_LOCK(mutex_);

 private:
  ResampleSettings with_rates(int from, int to) const;

  const ResampleSettings settings_;
  mutable Mutex mutex_;
  mutable std::map<std::pair<int, int>, std::shared_ptr<const AudioResampler>> made_
      GUARDED_BY(mutex_);
};

}  // namespace headrace
