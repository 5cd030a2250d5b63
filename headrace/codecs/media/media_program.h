// SPDX-License-Identifier: Apache-2.0
// Finds headrace-av and its requirements. Any thread may ask.
#pragma once

#include <string>

namespace headrace {

// Beside the library that this is part of, as a build has it and a wheel.
std::string media_program();
// The Debian package of the library that it was linked with.
const char* media_package();

}  // namespace headrace
