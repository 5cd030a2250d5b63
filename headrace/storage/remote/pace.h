// SPDX-License-Identifier: Apache-2.0
// When the next request is sent, as arithmetic on a clock that is given: pauses between tries, how
// many requests a server gets at once, and which are sent a second time. No thread, no network.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace headrace {

// Pauses that grow and scatter ("decorrelated jitter"): thousands of readers that a server turned
// away together do not come back together.
class Backoff {
 public:
  Backoff(double first, double longest) : first_(first), longest_(longest), last_(first) {}
  // `chance` in [0, 1). No shorter than what the server asks for (Retry-After), which is no reason
  // to ask at once.
  double next(double chance, std::optional<double> asked);

 private:
  double first_, longest_, last_;
};

// Requests at once: half as many after the server was throttled, one more a second while all are
// in use.
class RequestLimit {
 public:
  explicit RequestLimit(int most) : most_(most), limit_(most) {}
  int now() const { return static_cast<int>(limit_); }
  void throttled(double time);
  void all_in_use(double time);
  // Whether the server asked for fewer requests of late.
  bool is_throttled(double time) const { return cut_ && time - *cut_ < kCalmSeconds; }

 private:
  static constexpr double kCalmSeconds = 30;
  double most_, limit_;
  std::optional<double> cut_, grown_;
};

// After how long a request is sent a second time, by how long others of its size took.
class Hedges {
 public:
  explicit Hedges(double least_seconds) : least_(least_seconds) {}
  void begun() { budget_ = budget_ < kMostSaved ? budget_ + kShare : kMostSaved; }
  void took(uint64_t bytes, double seconds);
  // max(3 x median, 99 % of them) of its size; none until enough are known.
  std::optional<double> after(uint64_t bytes) const;
  // Whether one more stays within 2 % of the requests, which it then counts.
  bool take();

 private:
  static constexpr double kShare = 0.02, kMostSaved = 16;
  static constexpr size_t kKept = 256, kLeast = 20, kEach = 16;
  struct SizeClass {
    std::vector<float> seconds;  // the last kKept of them
    uint64_t count = 0;
    double after = 0;
  };
  static size_t class_of(uint64_t bytes);

  double least_, budget_ = 1;
  std::array<SizeClass, 65> classes_;
};

}  // namespace headrace
