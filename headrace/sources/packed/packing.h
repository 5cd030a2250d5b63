// SPDX-License-Identifier: Apache-2.0
// Assigns documents of different lengths to rows of a fixed length (bin packing), and computes the
// fields that depend on the assignment. Works on lengths only, not on tokens, except for labels.
// Pure functions of their arguments; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/base/dtype.h"

namespace headrace {

enum class PackMethod : uint8_t {
  kBestFit,     // longest first, each into the fullest row that it fits
  kFirstFit,    // in order, each into the first row that it fits
  kSequential,  // in order; a row ends when the next document does not fit
  kSplit,       // in order; documents are split where a row is full
};

// What to do with documents that are longer than a row. (PackMethod::kSplit always splits them.)
enum class LongDocument : uint8_t { kSplit, kTruncate, kDrop };

struct RowPacking {
  int64_t length = 4096;  // tokens per row
  PackMethod method = PackMethod::kBestFit;
  LongDocument too_long = LongDocument::kSplit;
  uint64_t seed = 0;  // orders documents of equal length (kBestFit)

  bool truncates() const {
    return too_long == LongDocument::kTruncate && method != PackMethod::kSplit;
  }
};

// Elements [begin, begin + count) of a document.
struct PackedPiece {
  int64_t begin;
  uint32_t document : 31;
  uint32_t continues : 1;  // the document has elements after these
  int32_t count;
};

struct DocumentRows {
  std::vector<PackedPiece> pieces;  // row by row
  std::vector<int64_t> row_ends;    // cumulative number of pieces at the end of each row
  int64_t tokens = 0;               // in all rows, without padding
  int64_t cut = 0;                  // documents that were truncated or split
  int64_t dropped = 0;              // documents, including empty ones
  int64_t tokens_left_out = 0;      // of documents that were truncated or dropped
  int64_t max_pieces = 0;           // per row; padding counts as a piece

  int64_t rows() const { return static_cast<int64_t>(row_ends.size()); }
};

// In a row, pieces are in the order of documents. O(n log n) at most. REQUIRES: lengths are not
// negative, fewer than 2^31 documents, 1 <= length < 2^31.
DocumentRows pack_documents(const std::vector<int64_t>& lengths, const RowPacking& options);

// --- The fields of a row that are computed from the positions of its pieces, and labels ---

using PackedPieces = std::span<const PackedPiece>;

// Each of `length` elements; see Note [Fields of a packed row].
void write_position_ids(PackedPieces pieces, std::span<int64_t> out);
void write_segment_ids(PackedPieces pieces, std::span<int32_t> out);
void write_cu_seqlens(PackedPieces pieces, int64_t length, std::span<int32_t> out);
// Labels of one piece, from its values and, if the document continues, the next value.
void write_labels(const PackedPiece& piece, const uint8_t* values, DType dtype, int shift,
                  int64_t ignore_index, uint8_t* out);

}  // namespace headrace
