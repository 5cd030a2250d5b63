// SPDX-License-Identifier: Apache-2.0
// The fields of a packed row that are computed from the positions of its pieces, and labels from
// tokens. Thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/dtype.h"
#include "headrace/sources/packed/packing.h"

namespace headrace {

using PackedPieces = std::span<const PackedPiece>;

// Each of `length` elements; see Note [Fields of a packed row].
void write_position_ids(PackedPieces pieces, std::span<int64_t> out);
void write_segment_ids(PackedPieces pieces, std::span<int32_t> out);
void write_cu_seqlens(PackedPieces pieces, int64_t length, std::span<int32_t> out);
// Labels of one piece, from its values and, if the document continues, the next value.
void write_labels(const PackedPiece& piece, const uint8_t* values, DType dtype, int shift,
                  int64_t ignore_index, uint8_t* out);

}  // namespace headrace
