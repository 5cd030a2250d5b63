// SPDX-License-Identifier: Apache-2.0
// A source whose records can only be decoded in groups: row groups of Parquet.
//
// When a record of a group is first read, the group's file ranges are requested together and
// decoded to a source, which stays in memory until others need the room. With an asynchronous
// storage, the next groups in reading order are prefetched.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/sources/source.h"
#include "headrace/storage/file_set.h"

namespace headrace {

struct RecordGroups {
  struct Group {
    int64_t end = 0;                     // the record number after its last
    std::vector<FileRange> ranges = {};  // what `decode` needs, at least one
    uint64_t decoded_bytes = 0;          // estimated
  };
  std::vector<Group> groups = {};
  std::shared_ptr<const FileSet> files = {};  // shared: with the creator of the ranges
  uint64_t memory = 0;                        // limit for groups in bytes; four are always kept
  Schema schema = {};
  std::vector<std::string> classes = {};
  uint64_t fingerprint = 0;
  std::string description = {};
  // Decodes a group to a source with this schema. Called by one thread at a time, without a lock.
  std::function<Result<SourcePtr>(int64_t group, std::vector<Buffer> bytes)> decode = {};
  std::function<std::vector<int64_t>(std::string_view field)> integer_column = {};
};

SourcePtr source_of_groups(RecordGroups groups);

}  // namespace headrace
