// SPDX-License-Identifier: Apache-2.0
// A file with some ranges in memory. Reads within one of these ranges are served from memory; any
// other read goes to the file, and may wait for its storage.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "headrace/storage/file.h"

namespace headrace {

struct HeldRange {
  uint64_t offset = 0;
  // shared: by all files that hold the range.
  std::shared_ptr<const Buffer> memory;
};

// The ranges, of the file at the same offsets, which must not overlap. Thread-safe, as any file.
File held_file(File file, std::vector<HeldRange> ranges);

}  // namespace headrace
