// SPDX-License-Identifier: Apache-2.0
// One integer feature of many TFRecords, without reading what lies around it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/formats/extents.h"
#include "headrace/storage/file_set.h"

namespace headrace {

// Of every record, on all cores. Throws Exception: HR0472, HR0473, storage errors, with their
// place; checksums of the data are not compared. REQUIRES: no record is known to be damaged.
std::vector<int64_t> tf_integer_column(const FileSet& files, const Extents& records,
                                       std::string_view feature);

}  // namespace headrace
