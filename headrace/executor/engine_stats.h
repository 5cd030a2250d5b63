// SPDX-License-Identifier: Apache-2.0
// The engine's counters. The table of counters (loader/counters.cc) defines each of them and where
// it is shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>

#include "headrace/executor/reading/read_counts.h"
#include "headrace/image/render_counts.h"

namespace headrace {

// Counts of the contents of the batches that the consumer received.
struct DeliveredCounts {
  int64_t batches = 0, records = 0, warnings = 0;
  PictureRemarks remarks;

  DeliveredCounts& operator+=(const DeliveredCounts& more) {
    batches += more.batches;
    records += more.records;
    warnings += more.warnings;
    remarks += more.remarks;
    return *this;
  }
  DeliveredCounts operator-(const DeliveredCounts& less) const {
    return {batches - less.batches, records - less.records, warnings - less.warnings,
            remarks - less.remarks};
  }
};

struct EngineStats : DeliveredCounts {
  int64_t copies = 0, predicted = 0;
  double wait_seconds = 0, memory_wait_seconds = 0;
  StageSeconds stages;
  size_t memory_used = 0, memory_peak = 0;
  ReadCounts reads = {};
  std::map<std::string_view, int64_t> finished_before = {};  // rows, by reason
};

}  // namespace headrace
