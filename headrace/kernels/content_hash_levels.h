// SPDX-License-Identifier: Apache-2.0
// content_hash() per SIMD level, for content_hash.cc and tests.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

uint64_t content_hash_scalar(const uint8_t* bytes, size_t count, uint64_t seed);
#if defined(__x86_64__)
uint64_t content_hash_avx2(const uint8_t* bytes, size_t count, uint64_t seed);
#endif

}  // namespace headrace
