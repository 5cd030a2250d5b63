// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli; RFC 3720, B.4), with the processor's instructions if it has them.
// Thread-safe.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

// The checksum of `bytes` appended to data whose checksum is `before`: crc32c(b, crc32c(a)) is the
// checksum of a followed by b.
uint32_t crc32c(std::span<const uint8_t> bytes, uint32_t before = 0);

}  // namespace headrace
