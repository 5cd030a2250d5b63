// SPDX-License-Identifier: Apache-2.0
// The rows of a JPEG that came without a row index, or with one that ends too early, where what is
// learned is kept (index="auto"): found by a walk over all of its entropy-coded data, which takes
// about as long as decoding a crop, once for each picture. Any thread may ask.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/image/recipe.h"

namespace headrace {

// Why a device cannot be given a JPEG by the rows that are known of it.
enum class MissingRows : uint8_t {
  kNone,     // all of them are known
  kUnknown,  // an index would tell them
  kNever,    // no index has them: it is progressive, say
};
MissingRows missing_rows(std::span<const uint8_t> jpeg, std::span<const uint8_t> row_index);

// Empty where nothing would keep them, or the walk has not found them.
std::vector<uint8_t> learn_rows(const EncodedPicture& picture);

}  // namespace headrace
