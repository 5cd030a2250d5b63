// SPDX-License-Identifier: Apache-2.0
// Names for files that are not whole yet. Any thread.
#pragma once

#include <string>

namespace headrace {

// 16 hexadecimal digits that no other call, process or machine comes to. Files are still made by
// O_EXCL: what has the name already is another's.
std::string unguessable();

}  // namespace headrace
