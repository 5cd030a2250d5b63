// SPDX-License-Identifier: Apache-2.0
// An operator's doc text, as shown in docstrings and by the command line.
#pragma once

#include <string>

#include "headrace/ops/op.h"

namespace headrace {

// The doc of the record, and which fields follow the pictures that it moves.
std::string doc_text(const OpRecord& record);

}  // namespace headrace
