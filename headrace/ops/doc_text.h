// SPDX-License-Identifier: Apache-2.0
// An operator's doc as docstrings and the command line show it.
#pragma once

#include <string>

#include "headrace/ops/op.h"

namespace headrace {

// Its record's, and what follows the pictures that it moves.
std::string doc_text(const OpRecord& record);

}  // namespace headrace
