// SPDX-License-Identifier: Apache-2.0
// The rows of a JPEG that came without a row index, or with one that ends too early, if the index
// is kept (index="auto"): found by a walk over all of its entropy-coded data, which takes about as
// long as decoding a crop, once for each picture. Any thread may ask.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/image/recipe.h"

namespace headrace {

// Why a device cannot be given a JPEG by the rows that are known of it.
enum class MissingRows : uint8_t {
  kNone,     // all of them are known
  kUnknown,  // an index would tell them
  kNever,    // no index has them: it is progressive, say
};
MissingRows missing_rows(std::span<const uint8_t> jpeg, std::span<const uint8_t> row_index);

// Whether something would keep them; or the JPEG is a small one of a pack, which earlier versions
// packed without an index: a walk then takes a tenth of what the CPU needs to decode it.
bool may_learn_rows(const EncodedPicture& picture, std::span<const uint8_t> jpeg);
// With entries inside of them. Empty where they may not be learned, or the walk has not found them.
// They stay until the thread learns others.
std::span<const uint8_t> learn_rows(const EncodedPicture& picture, std::span<const uint8_t> jpeg);

}  // namespace headrace
