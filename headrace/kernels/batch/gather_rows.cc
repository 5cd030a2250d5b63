// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/gather_rows.h"

namespace headrace {

GatherRows::GatherRows(const void* rows, int64_t row_bytes, const RowChoice& choice, void* batch,
                       int64_t count)
    : rows_(static_cast<const char*>(rows)),
      batch_(static_cast<char*>(batch)),
      row_bytes_(row_bytes),
      pieces_((row_bytes + kPiece - 1) / kPiece),
      count_(count),
      choice_(choice),
      word_(16) {
  const uintptr_t together = reinterpret_cast<uintptr_t>(rows) |
                             reinterpret_cast<uintptr_t>(batch) | static_cast<uintptr_t>(row_bytes);
  while (together % static_cast<uintptr_t>(word_)) word_ /= 2;
  if (word_ == 2) word_ = 1;  // rows of 16-bit numbers in odd counts: not worth a loop of its own
}

GatherRows GatherRows::slice(const void* rows, int64_t row_bytes, int64_t first, void* batch,
                             int64_t count) {
  const char* const begin = static_cast<const char*>(rows) + first * row_bytes;
  return GatherRows(begin, row_bytes * count, RowChoice::slice(0), batch, 1);
}

}  // namespace headrace
