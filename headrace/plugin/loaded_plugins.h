// SPDX-License-Identifier: Apache-2.0
// The plug-ins of this process. Each is loaded once and never unloaded; a rejected one is closed.
// Callable from any thread.
#pragma once

#include <string>

#include "headrace/plugin/declared.h"

namespace headrace {

// Loads a plug-in, whose transforms are then operators like those of the engine. If one with the
// same bytes is loaded already, returns that one. checked: checks each of its calls from now on
// (checked_call.h). Throws HR0570 to HR0572; HR0577 if the process still has an older file of this
// path.
const Plugin& load_plugin(const std::string& path, bool checked = false);

// The plug-in that data from another process refers to: the one with this fingerprint. If it is not
// loaded and `may_load` is true, loads the file at its path; a file with another fingerprint is
// rejected before any of its code runs, unless it replaces the file between the check and the
// loading. Throws HR0578.
const Plugin& require_plugin(const OpOrigin& wanted, bool may_load);

}  // namespace headrace
