// SPDX-License-Identifier: Apache-2.0
// A transform of a plug-in as an operator: fields become views, and what comes back is checked.
#pragma once

#include <memory>

#include "headrace/plugin/declared.h"

namespace headrace {

// The operator with these parameters. Throws HR0573 where the plug-in refuses them.
// REQUIRES: the transform lives as long as the operator.
std::unique_ptr<Op> make_plugin_op(const PluginTransform& transform, const Arguments& arguments);

}  // namespace headrace
