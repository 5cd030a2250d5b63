// SPDX-License-Identifier: Apache-2.0
// Reads boxes (ISO/IEC 14496-12, 4.2), which make up JPEG 2000 and HEIF files. Bounds-checked,
// allocates nothing; any thread may call it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/codecs/image/byte_order.h"

namespace headrace {

constexpr uint32_t box_named(const char (&name)[5]) {
  return uint32_t(name[0]) << 24 | uint32_t(name[1]) << 16 | uint32_t(name[2]) << 8 |
         uint32_t(name[3]);
}

// Calls visit(type, content) for each box until it returns false; the last one may be truncated.
template <class Visit>
void each_box(std::span<const uint8_t> file, const Visit& visit) {
  while (file.size() >= 8) {
    uint64_t length = big_u32(file, 0), head = 8;
    if (length == 1 && file.size() >= 16) {
      length = uint64_t{big_u32(file, 8)} << 32 | big_u32(file, 12);
      head = 16;
    }
    if (length == 0) length = file.size();
    if (length < head) return;
    length = std::min<uint64_t>(length, file.size());
    if (!visit(big_u32(file, 4), file.subspan(head, size_t(length) - head))) return;
    file = file.subspan(size_t(length));
  }
}

}  // namespace headrace
