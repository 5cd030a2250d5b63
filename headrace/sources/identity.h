// SPDX-License-Identifier: Apache-2.0
// Whether Source::identity() means the same in other processes.
#pragma once

#include "headrace/sources/source.h"

namespace headrace {

// It does for what was opened by path, and not for objects that only this process has.
bool is_known_elsewhere(const Source& source);

}  // namespace headrace
