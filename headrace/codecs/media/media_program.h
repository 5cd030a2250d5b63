// SPDX-License-Identifier: Apache-2.0
// Finds headrace-av and its requirements. Any thread may call.
#pragma once

#include <string>

namespace headrace {

// Next to the library that this is part of; for wheels, in the package headrace_media that is
// installed next to the package headrace. The path where it belongs, if it is in neither.
std::string media_program();
// The package of the program, or of the library that it was linked with: "libavcodec59".
std::string media_package();
// Hint for errors: how to install that package.
std::string media_install();
// Why media_program() is absent, and what to do about it.
std::string media_absence();
std::string media_absence_hint();

}  // namespace headrace
