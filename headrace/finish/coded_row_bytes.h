// SPDX-License-Identifier: Apache-2.0
// How many encoded bytes per record a slot has room for, if a device decodes pictures.
#pragma once

#include <cstddef>

#include "headrace/pipeline/plan.h"
#include "headrace/sources/source.h"

namespace headrace {

// Average size of a few records' images that the plan needs, plus some reserve. For slow sources
// and for small pictures: CodedRows::kUsualRow.
size_t coded_row_bytes(const Source& source, const Plan& plan);

}  // namespace headrace
