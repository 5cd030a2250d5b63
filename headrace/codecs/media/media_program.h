// SPDX-License-Identifier: Apache-2.0
// Finds headrace-av and its requirements. Any thread may call.
#pragma once

#include <string>

namespace headrace {

// Path of headrace-av: next to the library that this code is part of; for wheels, in the package
// headrace_media, installed next to the package headrace. If it is in neither, the path where it
// belongs.
std::string media_program();
// The package that contains the program, or the library that it was linked with: "libavcodec59".
std::string media_package();
// Hint for errors: how to install that package.
std::string media_install();
// Why media_program() is missing, and what to do about it.
std::string media_absence();
std::string media_absence_hint();

}  // namespace headrace
