// SPDX-License-Identifier: Apache-2.0
// Without data-dependent branches: one note in nine ends a block and two in three hold two symbols,
// which is unpredictable.
#include <cstddef>
#include <cstring>

#include "headrace/kernels/jpeg/huffman_levels.h"

namespace headrace {

using namespace huffman;

const uint64_t* skip_blocks(const uint64_t* note, const uint64_t* end, int blocks, uint64_t* dc) {
  uint64_t* const last = dc + blocks;
  for (; note < end; ++note) {
    const bool starts = is_dc(static_cast<uint32_t>(*note));
    if (starts && dc == last) return note;
    *dc = *note;
    dc += starts;
  }
  return end;
}

const uint64_t* skip_last_blocks(const uint64_t* begin, const uint64_t* end, int blocks,
                                 uint64_t* dc_end) {
  for (; end > begin && blocks > 0;) {
    --end;
    const bool starts = is_dc(static_cast<uint32_t>(*end));
    dc_end[-1] = *end;
    dc_end -= starts;
    blocks -= starts;
  }
  return end;
}

namespace {

void extract_blocks(const uint64_t* note, const uint64_t* end, const uint8_t* position,
                    int16_t* out) {
  int16_t nowhere;  // in place of the value of an absent symbol
  ptrdiff_t block = -64;
  unsigned k = 0;
  for (; note < end; ++note) {
    const auto entry = static_cast<uint32_t>(*note), stream = static_cast<uint32_t>(*note >> 32);
    const unsigned same_block = is_dc(entry) ? 0 : ~0u;
    block += static_cast<ptrdiff_t>(~same_block & 64);
    const unsigned first_k = k + first_advance_of(entry);
    k = (k + advance_of(entry)) & same_block;
    const uint32_t first_size = first_size_of(entry), last_size = last_size_of(entry);
    // Selects by table, because a condition would compile to a branch.
    int16_t* const first[2] = {&nowhere, out + block + position[first_k & 63]};
    int16_t* const last[2] = {&nowhere, out + block + position[k & 63]};
    *first[first_size != 0] =
        static_cast<int16_t>(value_at(stream, first_bits_of(entry), first_size));
    *last[last_size != 0] = static_cast<int16_t>(value_at(stream, bits_of(entry), last_size));
  }
}

void blocks(const HuffmanRun& run, const uint8_t* position, uint64_t* dc, int16_t* out) {
  const HuffmanWanted wanted = wanted_notes(run, dc, skip_blocks, skip_last_blocks);
  if (run.first == run.last_end) return;  // only DC values were requested, and `out` is null
  std::memset(out, 0, static_cast<size_t>(run.last_end - run.first) * 64 * sizeof(int16_t));
  extract_blocks(wanted.begin, wanted.end, position, out);
}

constexpr HuffmanKernels kKernels{blocks};

}  // namespace

HuffmanWanted wanted_notes(const HuffmanRun& run, uint64_t* dc, HuffmanSkip skip,
                           HuffmanSkip skip_last) {
  HuffmanWanted wanted{run.notes, run.end};
  if (run.first == run.last_end) {
    return {skip(run.notes, run.end, run.blocks, dc), run.end};
  }
  if (run.first > 0) wanted.begin = skip(run.notes, run.end, run.first, dc);
  if (const int after = run.blocks - run.last_end; after > 0) {
    wanted.end = skip_last(wanted.begin, run.end, after, dc + run.blocks);
  }
  return wanted;
}

const HuffmanKernels* huffman_kernels_scalar() { return &kKernels; }

}  // namespace headrace
