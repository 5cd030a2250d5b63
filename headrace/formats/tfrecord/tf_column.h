// SPDX-License-Identifier: Apache-2.0
// One integer feature of many TFRecords, without reading the bytes around it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/formats/shards/container_index.h"
#include "headrace/storage/file_set.h"

namespace headrace {

// The values of all records, using all cores, with `offset` added; -1 for bad records. Checksums
// are not verified. Throws Exception: storage errors, with their position.
std::vector<int64_t> tf_integer_column(const FileSet& files, const ContainerIndex& index,
                                       std::string_view feature, int64_t offset);

}  // namespace headrace
