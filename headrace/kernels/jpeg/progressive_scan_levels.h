// SPDX-License-Identifier: Apache-2.0
// The functions of progressive_scan.cc per SIMD level. Internal to kernels/.
#pragma once

#include "headrace/kernels/jpeg/idct.h"
#include "headrace/kernels/jpeg/progressive_scan.h"

namespace headrace {

struct BandKernels {
  // Applies the next bits to these blocks' bands. No block is started at or after `limit`.
  using Walk = bool (*)(const ProgressiveScan::Table& table, const ScanForm& form,
                        const uint8_t* limit, const ScanBlocks& blocks,
                        ProgressiveScan::Cursor& cursor);
  Walk begin, refine;
};

// The entry for a refinement scan, by a code's length and its symbol; 0 for invalid symbols.
constexpr uint32_t refinement(uint32_t length, uint32_t symbol) {
  const uint32_t zeros = symbol >> 4, size = symbol & 15;
  if (length == 0 || size > 1) return 0;
  if (size == 0 && zeros != 15) return zeros << 12 | length;
  return 1u << (16 + zeros) | size << 8 | (length + size);
}

// Null where the architecture has no such level.
const BandKernels* band_kernels_avx2();
const BandKernels* band_kernels_slow_pdep();
const BandKernels* band_kernels_avx512();

}  // namespace headrace
