// SPDX-License-Identifier: Apache-2.0
// A 64-bit hash of a file's bytes (XXH3), fast enough for every use: it distinguishes files, and
// detects changes. It protects against accidents, not attacks. Equal on all SIMD levels and
// machines, because it is stored in files.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

uint64_t content_hash(std::span<const uint8_t> bytes, uint64_t seed = 0);

}  // namespace headrace
