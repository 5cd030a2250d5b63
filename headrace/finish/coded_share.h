// SPDX-License-Identifier: Apache-2.0
// How many coded bytes a slot has room for, a record, where a device decodes pictures.
#pragma once

#include <cstddef>

#include "headrace/pipeline/plan.h"
#include "headrace/sources/source.h"

namespace headrace {

// Size of the images of a few records that the plan needs, and some reserve. For a source that is
// slow to ask, and for small pictures, CodedRows::kUsualRow.
size_t coded_share(const Source& source, const Plan& plan);

}  // namespace headrace
