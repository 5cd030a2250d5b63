// SPDX-License-Identifier: Apache-2.0
// The plug-ins of this process. Each is loaded once and stays; any thread may call.
#pragma once

#include <string>

#include "headrace/plugin/declared.h"

namespace headrace {

// Loads a plug-in, whose transforms are then operators like the engine's. One with the same bytes
// that is there already is that one. checked: looks at each of its calls (checked_call.h), from
// now on. Throws HR0570 to HR0572.
const Plugin& load_plugin(const std::string& path, bool checked = false);

// The plug-in that something names which was written elsewhere: one with this fingerprint. If none
// is loaded and `may_load`, the file at its path is, unless it has another fingerprint: nothing of
// such a file runs. Throws HR0578.
const Plugin& require_plugin(const OpOrigin& wanted, bool may_load);

}  // namespace headrace
