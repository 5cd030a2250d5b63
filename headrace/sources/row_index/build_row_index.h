// SPDX-License-Identifier: Apache-2.0
// Builds the row index of a whole dataset: reads and parses every encoded image once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

struct BuiltRowIndex {
  std::string file;   // if several: their folder
  int64_t first = 0;  // first record
  int64_t records = 0;
  int64_t pictures = 0;  // encoded images that could be read
  int64_t indexed = 0;   // now have an index; the others are formats without one
  int64_t bad = 0;       // unreadable records or damaged images
  uint64_t picture_bytes = 0, file_bytes = 0;
};

// Part `number` of `count` equal parts. The file of a part contains only its records, numbered from
// 0, and is byte-for-byte reproducible; join_row_indexes() joins the parts to the dataset's file.
struct RowIndexPart {
  int64_t number = 0, count = 1;
};

// `file` empty: the dataset's file in the cache. An existing file is replaced once the new one is
// complete; concurrent builders do not disturb each other, and the last one wins. For a view
// (subset, split), the underlying source is indexed; for a combination (concat, mix, join), each of
// its sources, to a separate file in the cache, or all of them in `file` if given. `threads` 0: the
// allowed cores. `progress` is called on the calling thread and may throw to cancel; then no file
// remains. Throws Exception: HR0462 if there is nothing to index, HR0463 if the file cannot be
// written, a storage error if the dataset cannot be read.
BuiltRowIndex build_row_index(const SourcePtr& source, const std::string& file, int threads,
                              const Progress& progress, RowIndexPart part = {});

// Joins the files of all parts, in order. Throws Exception: HR0460; HR0461 if they are not from one
// dataset; HR0463; a storage error.
void join_row_indexes(const std::vector<std::string>& parts, const std::string& file);

}  // namespace headrace
