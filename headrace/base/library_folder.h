// SPDX-License-Identifier: Apache-2.0
// Finds the folder of the engine's library, to locate files next to it. Any thread may call it.
#pragma once

#include <filesystem>

namespace headrace {

// The absolute folder of the library or module that contains this code, constant for the life of
// the process; empty if the dynamic loader does not know it.
const std::filesystem::path& library_folder();

// The absolute folder of a file, given the name that the dynamic loader reports. Empty for a name
// without a folder: the name of a program that was found in PATH does not tell where it is.
std::filesystem::path folder_of_loaded_file(const char* file);

}  // namespace headrace
