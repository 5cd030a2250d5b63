// SPDX-License-Identifier: Apache-2.0
// Names for files that are not complete yet. Thread-safe.
#pragma once

#include <string>

namespace headrace {

// 16 hexadecimal digits that no other call, process or machine produces. Callers still create files
// with O_EXCL: an existing file with that name belongs to another user.
std::string random_name();

}  // namespace headrace
