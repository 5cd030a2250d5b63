// SPDX-License-Identifier: Apache-2.0
// Loads the file of a plug-in: checks that it is a shared library for this machine, and finds its
// table.
//
// The file is checked before it is passed to the dynamic linker, which would map missing pages of a
// truncated file. Callable from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "headrace/plugin.h"

namespace headrace {

// The table of the library. Throws HR0570 if it cannot be loaded, HR0571 for another version of the
// interface. If a table is returned, the library stays loaded for the life of the process.
const headrace_plugin* plugin_table(const std::string& path, std::span<const uint8_t> file);

}  // namespace headrace
