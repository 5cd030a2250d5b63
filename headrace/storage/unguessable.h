// SPDX-License-Identifier: Apache-2.0
// Names for files that are not complete yet. Any thread.
#pragma once

#include <string>

namespace headrace {

// 16 hexadecimal digits that no other call, process or machine produces. Files are still created
// with O_EXCL: an existing file of that name belongs to someone else.
std::string unguessable();

}  // namespace headrace
