// SPDX-License-Identifier: Apache-2.0
// Declares which fields have a row per object, if the container does not specify it.
#pragma once

#include <string>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// The source with these fields as one row group (Field::row_group): its fields lose rows only
// together. Throws Exception HR0187: an unknown field, one without rows, or one of another group.
SourcePtr with_row_group(SourcePtr source, const std::vector<std::string>& fields);

}  // namespace headrace
