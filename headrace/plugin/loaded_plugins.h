// SPDX-License-Identifier: Apache-2.0
// The plug-ins of this process. Each is loaded once and never unloaded. Callable from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "headrace/plugin.h"
#include "headrace/plugin/declared.h"

namespace headrace {

// Loads a plug-in, whose transforms are then operators like those of the engine. If one with the
// same bytes is loaded already, returns that one. checked: checks each of its calls from now on
// (checked_call.h). Throws HR0570 to HR0572.
const Plugin& load_plugin(const std::string& path, bool checked = false);

// The plug-in that data from another process refers to: the one with this fingerprint. If it is not
// loaded and `may_load` is true, loads the file at its path; a file with another fingerprint is
// rejected before any of its code runs. Throws HR0578.
const Plugin& require_plugin(const OpOrigin& wanted, bool may_load);

// The table of the shared library, which is loaded (shared_library.cc). The file is checked before
// it is passed to the dynamic linker, which would map missing pages of a truncated file. Throws
// HR0570 if it cannot be loaded, HR0571 for another version of the interface. If a table is
// returned, the library stays loaded for the life of the process.
const headrace_plugin* plugin_table(const std::string& path, std::span<const uint8_t> file);

}  // namespace headrace
