// SPDX-License-Identifier: Apache-2.0
// Whether Source::identity() is valid in other processes.
#pragma once

#include "headrace/sources/source.h"

namespace headrace {

// True for sources opened by path, false for objects that exist only in this process.
bool has_shared_identity(const Source& source);

}  // namespace headrace
