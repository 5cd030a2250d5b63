// SPDX-License-Identifier: Apache-2.0
// Memory that rendering needs, computed from headers and operations, for the memory budget.
#pragma once

#include <cstddef>

#include "headrace/image/recipe.h"

namespace headrace {

// Bytes that rendering may need in addition to the target, including the renderer's buffers.
size_t working_bytes(const Recipe& recipe);
// Size of the pixels that a recipe starts from, whether decoded already or not.
size_t source_bytes(const Recipe& recipe);

}  // namespace headrace
