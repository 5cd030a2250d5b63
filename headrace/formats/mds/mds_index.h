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
  uint64_t bytes = 0;  // of each value; 0: its length stands in the sample
  bool operator==(const MdsColumn&) const = default;
};

// Paths are inside the folder.
struct MdsShard {
  std::string raw, packed;  // one of them may be empty, or not there
  std::string packing;      // "zstd:7", as its writer named it
  uint64_t samples = 0;
};

struct MdsIndex {
  std::vector<MdsColumn> columns;  // of all shards
  std::vector<MdsShard> shards;
};

// Throws Exception: HR0486 when the index makes no sense or leads outside of its folder, HR0487
// for other formats than MDS.
// outside: shards may be named outside of the folder.
MdsIndex read_mds_index(const std::string& path, bool outside);

// HR0487: what is in the dataset, and not read.
[[noreturn]] void mds_not_read(std::string what, std::string hint);
// HR0486, in an index.
[[noreturn]] void bad_mds_index(const std::string& path, std::string what, std::string hint = {});

}  // namespace headrace
