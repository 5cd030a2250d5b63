// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/gather_on_host.h"

#include <cstring>

namespace headrace {
namespace {

// For rows so short that a memcpy call costs more than the copy.
template <class Word>
void gather_words(const uint8_t* rows, const int64_t* indices, uint8_t* batch, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(batch + size_t(i) * sizeof(Word), rows + size_t(indices[i]) * sizeof(Word),
                sizeof(Word));
  }
}

}  // namespace

void gather_on_host(const void* rows, size_t row_bytes, const int64_t* indices, void* batch,
                    int64_t count) {
  const auto* const from = static_cast<const uint8_t*>(rows);
  auto* to = static_cast<uint8_t*>(batch);
  if (row_bytes == 0) return;
  if (row_bytes == 1) return gather_words<uint8_t>(from, indices, to, count);
  if (row_bytes == 4) return gather_words<uint32_t>(from, indices, to, count);
  if (row_bytes == 8) return gather_words<uint64_t>(from, indices, to, count);
  const RowsAhead ahead(rows, row_bytes, indices, count);
  for (int64_t i = 0; i < count; ++i, to += row_bytes) {
    ahead.at(i);
    std::memcpy(to, from + size_t(indices[i]) * row_bytes, row_bytes);
  }
}

}  // namespace headrace
