// SPDX-License-Identifier: Apache-2.0
// How many records should be read or ready ahead of the consumed ones: twice the number consumed
// during one read (latency times rate), so that the rate can grow. If reads keep the consumer
// waiting, the depth doubles once per read latency; otherwise it is unchanged. Not thread-safe;
// ReadAhead calls it under its mutex.
#pragma once

#include <algorithm>
#include <cstdint>

namespace headrace {

class ReadDepth {
 public:
  static constexpr int64_t kMin = 16, kMax = 1 << 14;

  // A read has arrived, this long after it was submitted.
  void arrived(double latency_seconds) {
    latency_ += (latency_seconds - latency_) / (latency_ > 0 ? 16 : 1);
  }
  // A record was taken at the time `now`, in seconds.
  void taken(double now) {
    if (begin_ < 0) begin_ = now;
    ++taken_;
    const double seconds = now - begin_;
    if (seconds < std::max(latency_, kShortest)) return;
    // A pause of the consumer must not delay the next burst: earlier demand decays slowly.
    rate_ = std::max(static_cast<double>(taken_) / seconds, rate_ * 0.9);
    begin_ = now;
    taken_ = 0;
  }
  int64_t records() const {
    const double wanted = 2 * latency_ * rate_;
    return std::min(kMin + static_cast<int64_t>(wanted), kMax);
  }

 private:
  static constexpr double kShortest = 5e-3;  // seconds over which a rate is measured
  double latency_ = 0, rate_ = 0, begin_ = -1;
  int64_t taken_ = 0;
};

}  // namespace headrace
