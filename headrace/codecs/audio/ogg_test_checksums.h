// SPDX-License-Identifier: Apache-2.0
// Corrects the checksums of a file's pages after a test has modified it.
#pragma once

#include <cstring>
#include <span>

#include "headrace/codecs/audio/ogg_pages.h"

namespace headrace::ogg_test {

inline void repair_checksums(std::span<uint8_t> bytes) {
  while (const size_t size = ogg_page_bytes(bytes)) {
    const uint32_t sum = ogg_checksum(bytes.first(size));
    for (size_t i = 0; i < 4; ++i) {
      bytes[kOggChecksumAt + i] = static_cast<uint8_t>(sum >> 8 * i);
    }
    bytes = bytes.subspan(size);
  }
}

}  // namespace headrace::ogg_test
