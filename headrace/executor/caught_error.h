// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "headrace/base/error.h"

namespace headrace {

// The caught exception as an error value: one with a code unchanged, HR0704 for failed allocations,
// HR0791 for anything else. REQUIRES: a catch block.
Error error_from_current_exception();

}  // namespace headrace
