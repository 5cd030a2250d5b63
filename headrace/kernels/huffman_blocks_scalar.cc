// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "headrace/kernels/huffman_lane.h"

namespace headrace {
namespace {

using namespace huffman;

void blocks(const HuffmanNotes& notes, int first, int end, const uint8_t* position,
            int32_t* differences, int16_t* out) {
  std::memset(out, 0, static_cast<size_t>(end - first) * 64 * sizeof(int16_t));
  int block = -1;
  unsigned k = 0;
  int16_t* to = nullptr;  // null outside the window
  for (const uint64_t* note = notes.begin; note < notes.end; ++note) {
    const auto entry = static_cast<uint32_t>(*note), stream = static_cast<uint32_t>(*note >> 32);
    if (is_dc(entry)) {
      *differences++ = value_at(stream, bits_of(entry), last_size_of(entry));
      ++block;
      k = 0;
      to = block >= first && block < end ? out + size_t(block - first) * 64 : nullptr;
      continue;
    }
    if (!to) continue;
    if (const uint32_t advance = first_advance_of(entry)) {
      const int value = value_at(stream, first_bits_of(entry), first_size_of(entry));
      to[position[(k + advance) & 63]] = static_cast<int16_t>(value);
    }
    k += advance_of(entry);
    if (!(entry & kEnd)) {
      const int value = value_at(stream, bits_of(entry), last_size_of(entry));
      to[position[k & 63]] = static_cast<int16_t>(value);
    }
  }
}

constexpr HuffmanKernels kKernels{blocks};

}  // namespace

const HuffmanKernels& huffman_kernels_scalar() { return kKernels; }

}  // namespace headrace
