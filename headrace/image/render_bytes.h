// SPDX-License-Identifier: Apache-2.0
// Memory that rendering takes, known from headers and steps alone: for the memory budget.
#pragma once

#include <cstddef>

#include "headrace/image/recipe.h"

namespace headrace {

// Bytes that rendering may need beside the target, the renderer's buffers included.
size_t working_bytes(const Recipe& recipe);
// Size of the pixels with which a recipe begins, decoded or to be decoded.
size_t source_bytes(const Recipe& recipe);

}  // namespace headrace
