// SPDX-License-Identifier: Apache-2.0
// The functions of store.cc per SIMD level. Internal to kernels/.
#pragma once

#include <cstdint>

#include "headrace/kernels/store.h"

namespace headrace {

struct StoreKernels {
  // Stores a prefix of the row and returns its length; the scalar loop does the rest.
  int (*row)(const StoreTable& table, const uint8_t* in, int count, void* out, bool stream);
  // Interleaves a prefix of three rows of elements of 1, 2 or 4 bytes; returns its length. Reads up
  // to 64 bytes past each row.
  int (*interleave3)(int element_bytes, const void* const in[], int count, void* out, bool stream);
  // Orders streamed stores before what follows.
  void (*fence)();
};

// Null where the architecture has no such level.
const StoreKernels* store_kernels_avx2();
const StoreKernels* store_kernels_avx512();
const StoreKernels* store_kernels_neon();

}  // namespace headrace
