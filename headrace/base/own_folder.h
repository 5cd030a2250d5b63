// SPDX-License-Identifier: Apache-2.0
// Finds the folder of the engine's library, for files next to it. Any thread may call it.
#pragma once

#include <filesystem>

namespace headrace {

// The folder of the library or module that this code is part of, absolute and the same for the life
// of the process; empty if the loader does not know it.
const std::filesystem::path& own_folder();

// The absolute folder of a file as the loader names it. Empty for a name without a folder: that of
// a program which was found in PATH says nothing about where it is.
std::filesystem::path folder_of_loaded(const char* file);

}  // namespace headrace
