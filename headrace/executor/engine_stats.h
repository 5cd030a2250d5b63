// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>

#include "headrace/image/render.h"

namespace headrace {

struct EngineStats {
  int64_t batches = 0, records = 0, warnings = 0, copies = 0;
  PictureRemarks remarks;
  int64_t foreseen = 0;  // batches of ragged tensors that were there before their values
  double wait_seconds = 0, memory_wait_seconds = 0;  // of next(); of records for their memory
  StageSeconds stages;
  size_t memory_used = 0, memory_peak = 0;
  // Rows that crossed as they are delivered, where a device finishes the others, by reason.
  std::map<std::string_view, int64_t> finished_before = {};
};

}  // namespace headrace
