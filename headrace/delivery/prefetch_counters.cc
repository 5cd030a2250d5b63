// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "headrace/delivery/prefetcher.h"

namespace headrace {
namespace {

using Values = const PrefetchStats&;

CounterValue number_of(auto number) { return static_cast<int64_t>(number); }

std::vector<Counter<PrefetchStats>> all_prefetch_counters() {
  return {
      {.name = "batches",
       .unit = "batches",
       .doc = "Batches that were copied.",
       .value = [](Values s) { return number_of(s.batches); },
       .adds = Adds::kMost},
      {.name = "bytes",
       .unit = "bytes",
       .doc = "Bytes that were copied.",
       .value = [](Values s) { return number_of(s.bytes); }},
      {.name = "delivered_bytes",
       .unit = "bytes",
       .doc = "Bytes of the batches; more, where rows are finished on the device.",
       .value = [](Values s) { return number_of(s.delivered_bytes); }},
      {.name = "wait_seconds",
       .unit = "seconds",
       .doc = "Time that the loop waited for a batch.",
       .value = [](Values s) { return CounterValue(s.wait_seconds); },
       .adds = Adds::kMost},
      {.name = "source_seconds",
       .unit = "seconds",
       .doc = "Time that the source took.",
       .value = [](Values s) { return CounterValue(s.feed_seconds); }},
      {.name = "staging_seconds",
       .unit = "seconds",
       .doc = "Time of copies into pinned memory, waiting for room included.",
       .value = [](Values s) { return CounterValue(s.staging_seconds); }},
      {.name = "batches_beyond_depth",
       .unit = "batches",
       .doc = "Batches that got memory of their own, because the consumer keeps others.",
       .value = [](Values s) { return number_of(s.beyond); }},
      {.name = "device_bytes",
       .unit = "bytes",
       .doc = "Memory on the device.",
       .value = [](Values s) { return number_of(s.device_bytes); },
       .grows = false},
      {.name = "scratch_bytes",
       .unit = "bytes",
       .doc = "Of device_bytes, for rows that are finished there.",
       .value = [](Values s) { return number_of(s.scratch_bytes); },
       .grows = false},
      {.name = "pinned_bytes",
       .unit = "bytes",
       .doc = "Pinned memory on the host.",
       .value = [](Values s) { return number_of(s.pinned_bytes); },
       .grows = false},
  };
}

}  // namespace

std::span<const Counter<PrefetchStats>> prefetch_counters() {
  static const auto* counters = new std::vector<Counter<PrefetchStats>>(all_prefetch_counters());
  return *counters;
}

}  // namespace headrace
