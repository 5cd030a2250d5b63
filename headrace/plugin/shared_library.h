// SPDX-License-Identifier: Apache-2.0
// The file of a plug-in: whether it is a shared library of this machine, and its table.
//
// The file is checked before it is passed to the dynamic linker, which trusts it: for a truncated
// file it would map missing pages. Any thread may call.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "headrace/plugin.h"

namespace headrace {

// The table of the library. Throws HR0570 for what cannot be loaded, HR0571 for another version of
// the interface. The library stays loaded for the life of the process where a table is returned.
const headrace_plugin* plugin_table(const std::string& path, std::span<const uint8_t> file);

}  // namespace headrace
