// SPDX-License-Identifier: Apache-2.0
// Reads one integer feature of many TFRecords, without the other bytes of the records.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/formats/shards/container_index.h"
#include "headrace/storage/file_set.h"

namespace headrace {

// The values of all records, with `offset` added; -1 for bad records. Uses all cores. Does not
// verify checksums. Throws Exception: storage errors, with their location.
std::vector<int64_t> tf_integer_column(const FileSet& files, const ContainerIndex& index,
                                       std::string_view feature, int64_t offset);

}  // namespace headrace
