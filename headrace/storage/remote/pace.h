// SPDX-License-Identifier: Apache-2.0
// Scheduling of requests, as pure functions of time: pauses between attempts, the number of
// concurrent requests per server, and which requests are sent a second time (hedging). No threads,
// no network.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace headrace {

// Growing, randomized pauses ("decorrelated jitter"): thousands of readers rejected by a server at
// the same time do not retry at the same time.
class Backoff {
 public:
  Backoff(double first, double longest) : first_(first), longest_(longest), last_(first) {}
  // `chance`: random, in [0, 1). The pause is at least the server's Retry-After (`asked`); a short
  // Retry-After does not shorten it.
  double next(double chance, std::optional<double> asked);

 private:
  double first_, longest_, last_;
};

// Concurrent requests: halved when the server throttles, increased by one per second while all are
// in use.
class RequestLimit {
 public:
  explicit RequestLimit(int most) : most_(most) {}
  // Changes the limit; a server that throttled does not immediately get more requests.
  void set_most(int most);
  int now() const { return static_cast<int>(std::min(most_, allowed_)); }
  void throttled(double time);
  void all_in_use(double time);
  // Whether the server recently requested fewer requests.
  bool is_throttled(double time) const { return cut_ && time - *cut_ < kCalmSeconds; }

 private:
  static constexpr double kCalmSeconds = 30;
  double most_;
  double allowed_ = std::numeric_limits<double>::infinity();  // after throttling by the server
  std::optional<double> cut_, grown_;
};

// The delay before a request is sent a second time, from the durations of requests of similar size.
class Hedges {
 public:
  explicit Hedges(double min_seconds) : least_(min_seconds) {}
  void set_least(double seconds) { least_ = seconds; }
  void begun() { budget_ = budget_ < kMaxSaved ? budget_ + kShare : kMaxSaved; }
  void took(uint64_t bytes, double seconds);
  // max(3 x median, 99th percentile) for its size class; with too few samples, the maximum over all
  // classes, and at least a second.
  double after(uint64_t bytes) const;
  // Whether another hedge stays within 2 % of the requests; if so, counts it.
  bool take();

 private:
  static constexpr double kShare = 0.02, kMaxSaved = 16;
  static constexpr size_t kKept = 256, kMin = 20, kEach = 16;
  static constexpr double kUnknownSeconds = 1, kUnknownRate = 10e6;
  struct SizeClass {
    std::vector<float> seconds;  // the last kKept durations
    uint64_t count = 0;
    double after = 0;
  };
  static size_t class_of(uint64_t bytes);

  double least_, budget_ = 1;
  std::array<SizeClass, 65> classes_;
};

}  // namespace headrace
