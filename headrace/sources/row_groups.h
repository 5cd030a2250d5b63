// SPDX-License-Identifier: Apache-2.0
// The fields that have a row for each object, where the container does not specify it.
#pragma once

#include <string>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// The source with these fields as one row group (Field::row_group), in which nothing loses rows
// alone. Throws Exception HR0187: no such field, one without rows, or one of another group.
SourcePtr with_row_group(SourcePtr source, const std::vector<std::string>& fields);

}  // namespace headrace
