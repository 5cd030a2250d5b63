// SPDX-License-Identifier: Apache-2.0
// Whether Source::identity() is valid in other processes.
#pragma once

#include "headrace/sources/source.h"

namespace headrace {

// True for sources opened by path, false for objects that exist only in this process.
bool is_known_elsewhere(const Source& source);

}  // namespace headrace
