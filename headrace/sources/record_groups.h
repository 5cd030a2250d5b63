// SPDX-License-Identifier: Apache-2.0
// A source whose records can only be decoded in groups: row groups of Parquet.
//
// A group becomes a source of its own when one of its records is first read, from ranges of its
// file that are requested together; it stays in memory until others need the room. In asynchronous
// storage the next groups of the order are requested ahead.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/sources/source.h"
#include "headrace/storage/file_ranges.h"

namespace headrace {

struct RecordGroups {
  struct Group {
    int64_t end = 0;                     // the number of the record after its last
    std::vector<FileRange> ranges = {};  // what `decode` needs, at least one
    uint64_t decoded_bytes = 0;          // estimated
  };
  std::vector<Group> groups = {};
  std::shared_ptr<const FileSet> files = {};  // shared: with who made the ranges
  uint64_t memory = 0;                        // for groups; four are kept in any case
  Schema schema = {};
  std::vector<std::string> classes = {};
  uint64_t fingerprint = 0;
  std::string description = {};
  // The group's records, which have this schema. Called by one thread at a time, without a lock.
  std::function<Result<SourcePtr>(int64_t group, std::vector<Buffer> bytes)> decode = {};
  std::function<std::vector<int64_t>(std::string_view field)> integer_column = {};
};

SourcePtr source_of_groups(RecordGroups groups);

}  // namespace headrace
