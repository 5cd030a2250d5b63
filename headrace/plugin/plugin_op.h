// SPDX-License-Identifier: Apache-2.0
// A transform of a plug-in as an operator: passes fields as views, and checks the results.
#pragma once

#include <memory>

#include "headrace/plugin/declared.h"

namespace headrace {

// The operator with these parameters. Throws HR0573 if the plug-in rejects them. REQUIRES: the
// transform outlives the operator.
std::unique_ptr<Op> make_plugin_op(const PluginTransform& transform, const Arguments& arguments);

}  // namespace headrace
