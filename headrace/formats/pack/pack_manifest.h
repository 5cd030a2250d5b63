// SPDX-License-Identifier: Apache-2.0
// The output of unpacking other than media files: a line of JSON per record, and arrays as .npy
// files (NumPy's format 1.0).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/formats/pack/pack_summary.h"
#include "headrace/sources/schema.h"

namespace headrace {

// Whether the unpacked files alone, opened as a folder, give the same records in the same order
// with the same labels, so that no manifest is needed.
bool folders_suffice(const OpenedPack& pack);

// The header of a .npy file whose array has this shape.
std::vector<uint8_t> npy_header(DType dtype, const Shape& shape);

}  // namespace headrace
