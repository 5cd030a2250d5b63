// SPDX-License-Identifier: Apache-2.0
// For index="auto": finds the rows of a JPEG whose row index is missing or ends too early, by
// decoding all of its Huffman codes. This is done once per picture, and takes about as long as
// decoding a crop. Any thread may call it.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/image/recipe.h"

namespace headrace {

// Whether the known row positions of a JPEG suffice to decode it on a device.
enum class MissingRows : uint8_t {
  kNone,     // all rows are known
  kUnknown,  // an index would provide them
  kNever,    // no index can contain them: for example, a progressive JPEG
};
MissingRows missing_rows(std::span<const uint8_t> jpeg, std::span<const uint8_t> row_index);

// Whether the row positions would be stored for reuse; or the JPEG is a small one of a pack written
// without an index by an earlier version: finding its rows takes a tenth of the CPU time of
// decoding it.
bool may_find_rows(const EncodedImage& picture, std::span<const uint8_t> jpeg);
// The row positions, also with entries inside of rows. Empty if the rows may not be determined, or
// were not found. Valid until the thread's next call.
std::span<const uint8_t> find_rows(const EncodedImage& picture, std::span<const uint8_t> jpeg);

}  // namespace headrace
