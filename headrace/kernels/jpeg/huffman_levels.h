// SPDX-License-Identifier: Apache-2.0
// The entropy decoder's functions per SIMD level. Internal to kernels/jpeg/huffman*. Null where the
// architecture has no such level.
#pragma once

#include <cstdint>

#include "headrace/kernels/jpeg/huffman_entry.h"

namespace headrace {

struct HuffmanStream;

// Updates lanes[i]->state; returns the index of the lane that stopped running.
using HuffmanWalk = int (*)(HuffmanStream* const* lanes, int count);
HuffmanWalk huffman_walk_plain();
HuffmanWalk huffman_walk_bmi2();  // null where the architecture has none

// The notes of a run, and which of its blocks are requested.
struct HuffmanRun {
  const uint64_t* notes;
  const uint64_t* end;
  int blocks;           // total number
  int first, last_end;  // wanted: [first, last_end)
};
struct HuffmanKernels {
  // Wanted blocks: writes coefficients to `out`, with differences in place of DC values. Other
  // blocks: writes their DC notes to dc[block]; may overwrite eight more.
  void (*blocks)(const HuffmanRun& run, const uint8_t* position, uint64_t* dc, int16_t* out);
};
// Copies the DC notes of the first blocks to `dc` and returns where the next block begins, or
// `end`. Likewise for the last blocks, to before `dc_end`; returns where the first of them begins.
using HuffmanSkip = const uint64_t* (*)(const uint64_t* notes, const uint64_t* end, int blocks,
                                        uint64_t* dc);
const uint64_t* skip_blocks(const uint64_t* note, const uint64_t* end, int blocks, uint64_t* dc);
const uint64_t* skip_last_blocks(const uint64_t* begin, const uint64_t* end, int blocks,
                                 uint64_t* dc_end);

// wanted_notes() finds the notes of the wanted blocks, and copies the DC notes of the others to
// `dc`.
struct HuffmanWanted {
  const uint64_t* begin;
  const uint64_t* end;
};
HuffmanWanted wanted_notes(const HuffmanRun& run, uint64_t* dc, HuffmanSkip skip,
                           HuffmanSkip skip_last);

const HuffmanKernels* huffman_kernels_scalar();
const HuffmanKernels* huffman_kernels_avx2();
const HuffmanKernels* huffman_kernels_avx512();

}  // namespace headrace
