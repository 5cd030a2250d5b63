// SPDX-License-Identifier: Apache-2.0
// The index.json of a folder of MDS shards (MosaicML Streaming, version 2).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/base/error.h"

namespace headrace {

struct MdsColumn {
  std::string name, encoding;
  uint64_t bytes = 0;  // size of each value; 0: variable, stored in the sample
  bool operator==(const MdsColumn&) const = default;
};

// Paths are relative to the folder.
struct MdsShard {
  std::string raw, packed;  // one of them may be empty, or not exist
  std::string packing;      // "zstd:7", as the writer named it
  uint64_t samples = 0;
};

struct MdsIndex {
  std::vector<MdsColumn> columns;  // the same in all shards
  std::vector<MdsShard> shards;
};

// Throws Exception: HR0486 if the index is invalid or refers to files outside of its folder, HR0487
// for formats other than MDS. `outside`: allow shards outside of the folder.
MdsIndex read_mds_index(const std::string& path, bool outside);

// HR0487: an unsupported part of the dataset.
[[noreturn]] void mds_not_read(std::string what, std::string hint);
// HR0486, in an index.
[[noreturn]] void bad_mds_index(const std::string& path, std::string what, std::string hint = {});

}  // namespace headrace
