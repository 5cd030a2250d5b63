// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/packed/row_fields.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "headrace/sources/columns/integers.h"

namespace headrace {

void write_position_ids(PackedPieces pieces, std::span<int64_t> out) {
  for (const PackedPiece& piece : pieces) {
    const auto of_piece = out.first(static_cast<size_t>(piece.count));
    std::iota(of_piece.begin(), of_piece.end(), int64_t{0});
    out = out.subspan(of_piece.size());
  }
  std::iota(out.begin(), out.end(), int64_t{0});
}

void write_segment_ids(PackedPieces pieces, std::span<int32_t> out) {
  int32_t segment = 0;
  for (const PackedPiece& piece : pieces) {
    const auto of_piece = out.first(static_cast<size_t>(piece.count));
    std::ranges::fill(of_piece, ++segment);
    out = out.subspan(of_piece.size());
  }
  std::ranges::fill(out, 0);
}

void write_cu_seqlens(PackedPieces pieces, int64_t length, std::span<int32_t> out) {
  size_t at = 0;
  int32_t begin = 0;
  for (const PackedPiece& piece : pieces) {
    out[at++] = begin;
    begin += piece.count;
  }
  if (begin < length) out[at++] = begin;
  std::fill(out.begin() + static_cast<ptrdiff_t>(at), out.end(), static_cast<int32_t>(length));
}

void write_labels(const PackedPiece& piece, const uint8_t* values, DType dtype, int shift,
                  int64_t ignore_index, uint8_t* out) {
  const size_t item = size_of(dtype), count = static_cast<size_t>(piece.count);
  if (shift == 0) {
    std::memcpy(out, values, count * item);
    fill_integers(out, dtype, 1, ignore_index);
    return;
  }
  const bool next = piece.continues;
  std::memcpy(out, values + item, (next ? count : count - 1) * item);
  if (!next) fill_integers(out + (count - 1) * item, dtype, 1, ignore_index);
}

}  // namespace headrace
