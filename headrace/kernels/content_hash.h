// SPDX-License-Identifier: Apache-2.0
// A 64-bit hash of a file's bytes (XXH3), fast enough for every use, to distinguish files and
// detect changes. The hash protects against accidents, not attacks, and is equal on all SIMD levels
// and machines, because it is stored in files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace headrace {

uint64_t content_hash(std::span<const uint8_t> bytes, uint64_t seed = 0);

// content_hash() per SIMD level, for content_hash.cc and tests.
uint64_t content_hash_scalar(const uint8_t* bytes, size_t count, uint64_t seed);
#if defined(__x86_64__)
uint64_t content_hash_avx2(const uint8_t* bytes, size_t count, uint64_t seed);
#endif

}  // namespace headrace
