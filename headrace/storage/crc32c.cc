// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace headrace {

uint32_t crc32c(std::span<const uint8_t> bytes, uint32_t before) {
  uint32_t state = ~before;
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), size_t{1} << 30);  // the library's length is an int
    // The parameter is not const, although the library only reads it.
    state = crc32_iscsi(const_cast<uint8_t*>(bytes.data()), static_cast<int>(count), state);
    bytes = bytes.subspan(count);
  }
  return ~state;
}

}  // namespace headrace
