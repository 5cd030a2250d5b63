// SPDX-License-Identifier: Apache-2.0
// GatherRows: copies rows, as bytes, from a set to a batch, chosen by a slice, by indices or by a
// permutation. Any dtype; a copy, so equal to NumPy's `rows[indices]` to the last bit.
#pragma once

#include <cstdint>
#include <cstring>

#include "headrace/base/host_device_function.h"
#include "headrace/kernels/batch/lanes.h"
#include "headrace/kernels/batch/row_choice.h"

namespace headrace {

class GatherRows {
 public:
  // Row choice(i) of `rows` becomes row i of `batch`, for i < count. Both are dense and must not
  // overlap. Sizes are in bytes and may be zero; addresses and sizes need no alignment.
  GatherRows(const void* rows, int64_t row_bytes, const RowChoice& choice, void* batch,
             int64_t count);
  // Rows [first, first + count) as one copy, however short the rows are.
  static GatherRows slice(const void* rows, int64_t row_bytes, int64_t first, void* batch,
                          int64_t count);

  HEADRACE_HD int64_t items() const { return count_ * pieces_; }

  HEADRACE_HD void operator()(int64_t item, Lane lane) const {
    const int64_t i = item / pieces_, begin = (item - i * pieces_) * kPiece;
    const int64_t bytes = row_bytes_ - begin < kPiece ? row_bytes_ - begin : kPiece;
    const char* const from = rows_ + choice_(i) * row_bytes_ + begin;
    char* const to = batch_ + i * row_bytes_ + begin;
    switch (word_) {
      case 16:
        return copy<Words<uint64_t, 2>>(from, to, bytes, lane);
      case 8:
        return copy<uint64_t>(from, to, bytes, lane);
      case 4:
        return copy<uint32_t>(from, to, bytes, lane);
      default:
        return copy<char>(from, to, bytes, lane);
    }
  }

 private:
  static constexpr int64_t kPiece = 4096;  // bytes of a row per warp: 8 loads of 16 bytes per lane

  template <class Word, int count>
  struct alignas(sizeof(Word) * count) Words {
    Word word[count];
  };

  template <class Word>
  HEADRACE_HD static void copy(const char* from, char* to, int64_t bytes, Lane lane) {
    for (int64_t at = lane.number * int64_t{sizeof(Word)}; at < bytes;
         at += lane.count * int64_t{sizeof(Word)}) {
      std::memcpy(__builtin_assume_aligned(to + at, alignof(Word)),
                  __builtin_assume_aligned(from + at, alignof(Word)), sizeof(Word));
    }
  }

  const char* rows_;
  char* batch_;
  int64_t row_bytes_, pieces_, count_;
  RowChoice choice_;
  int word_;  // bytes per access: addresses and sizes are multiples of it
};

}  // namespace headrace
