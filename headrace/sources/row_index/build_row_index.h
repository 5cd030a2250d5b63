// SPDX-License-Identifier: Apache-2.0
// Makes the row index of a whole dataset: reads every encoded picture once and walks through it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

struct BuiltRowIndex {
  std::string file;   // of several: their folder
  int64_t first = 0;  // record
  int64_t records = 0;
  int64_t pictures = 0;  // encoded ones that could be read
  int64_t indexed = 0;   // have an index now; the others are of kinds without one
  int64_t bad = 0;       // records that could not be read, or pictures that are damaged
  uint64_t picture_bytes = 0, file_bytes = 0;
};

// Part `number` of `count` equal ones. The file of a part has its records alone, numbered from 0
// on, and is the same byte by byte whoever makes it: join_row_indexes() makes the dataset's of all.
struct RowIndexPart {
  int64_t number = 0, count = 1;
};

// `file` empty: the dataset's own in the cache. A file that is there is replaced once the new one
// is complete; several builders at once do not disturb each other, and the last one's stays. Of a
// view (subset, split), the source that it views is indexed; of a combination (concat, mix, join)
// each source that it is made of, to a file of its own in the cache, or all of them in the one that
// is named. `threads` 0: the allowed cores.
// `progress` is called on this thread and may throw to cancel; then nothing is left behind.
// Throws Exception: HR0462 when there is nothing to index, HR0463 when the file cannot be written,
// a storage error when the dataset cannot be read.
BuiltRowIndex build_row_index(const SourcePtr& source, const std::string& file, int threads,
                              const Progress& progress, RowIndexPart part = {});

// One file of those of all parts, in order. Throws Exception: HR0460, HR0461 when they are not of
// one dataset, HR0463, a storage error.
void join_row_indexes(const std::vector<std::string>& parts, const std::string& file);

}  // namespace headrace
