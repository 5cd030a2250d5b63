// SPDX-License-Identifier: Apache-2.0
// Counters declared as data. stats(), the bench, the watch, its Prometheus metrics and the guide's
// table are generated from them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace headrace {

enum class CounterKind : uint8_t {
  kCumulative,  // cumulative since its object was created
  kCurrent,     // the current state (a gauge)
};

// How the counters of several ranks, devices or worker processes are combined.
enum class Aggregation : uint8_t {
  kSum,
  kMax,  // the largest: all measure the same time span, or have the same value
};

using CountsByReason = std::vector<std::pair<std::string_view, int64_t>>;
using CounterValue = std::variant<int64_t, double, bool, std::string, CountsByReason>;

template <class Stats>
struct Counter {
  std::string_view name;  // in stats(); "stages.read" is "read" in the dictionary "stages"
  std::string_view unit;  // "records", "bytes", "seconds"; empty: a string or a boolean
  std::string_view doc;   // one sentence
  CounterValue (*value)(const Stats& stats);
  CounterKind tells = CounterKind::kCumulative;
  Aggregation adds = Aggregation::kSum;
  std::string_view metric = "";  // Prometheus name without "headrace_loader_"; empty: none
  std::string_view work = "";    // for a stage: what it does ("reading")
};

// The value of a data member, or of a member of that member.
template <auto... kMembers, class Stats>
CounterValue value_of(const Stats& stats) {
  const auto& held = (stats.*....*kMembers);
  if constexpr (std::is_same_v<decltype(held), const bool&>) {
    return held;
  } else if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(held)>>) {
    return static_cast<int64_t>(held);
  } else {
    return held;
  }
}

}  // namespace headrace
