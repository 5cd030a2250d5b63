// SPDX-License-Identifier: Apache-2.0
// Where the engine lies, for what lies beside it. Any thread may ask.
#pragma once

#include <filesystem>

namespace headrace {

// The folder of the library or module that this code is part of, absolute; empty if the loader does
// not know it.
std::filesystem::path own_folder();

}  // namespace headrace
