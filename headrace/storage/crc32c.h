// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli; RFC 3720, B.4), with the processor's instructions if it has them.
// Thread-safe.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

// Of the bytes that follow others whose value is `before`: crc32c(b, crc32c(a)) is that of a and b.
uint32_t crc32c(std::span<const uint8_t> bytes, uint32_t before = 0);

}  // namespace headrace
