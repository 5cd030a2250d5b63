// SPDX-License-Identifier: Apache-2.0
// Reads ranges from the files of a set, all requested at once: for containers whose records need
// many parts of a file together (column chunks of a row group). Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/storage/file_set.h"

namespace headrace {

struct FileRange {
  size_t file = 0;  // index in the set
  uint64_t offset = 0, bytes = 0;
};

using RangeBytes = Result<std::vector<Buffer>>;  // one for each range

// Calls `done` once: on the calling thread for local files, otherwise on any thread, where it must
// not block or throw. A range beyond the end of its file is HR0205, before anything is requested.
// The set is not used after the call.
void fetch_ranges(const FileSet& files, std::span<const FileRange> ranges,
                  std::function<void(RangeBytes)> done);
// The blocking form.
RangeBytes read_ranges(const FileSet& files, std::span<const FileRange> ranges);

}  // namespace headrace
