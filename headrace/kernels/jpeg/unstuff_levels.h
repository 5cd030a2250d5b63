// SPDX-License-Identifier: Apache-2.0
// What each SIMD level implements for unstuff.cc. Internal to kernels/.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/kernels/jpeg/huffman.h"

namespace headrace {

// Does a prefix that ends before the first marker and not after a 0xff; the scalar loop the rest.
using UnstuffPrefix = Unstuffed (*)(const uint8_t* in, size_t size, uint8_t* out);

// Null where the architecture has no such level.
UnstuffPrefix unstuff_avx2();
UnstuffPrefix unstuff_avx512();
UnstuffPrefix unstuff_neon();

}  // namespace headrace
