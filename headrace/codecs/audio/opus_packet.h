// SPDX-License-Identifier: Apache-2.0
// The first two bytes of an Opus packet (RFC 6716, 3.1).
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

// Samples at 48 kHz; 0 if not a valid packet.
inline int64_t opus_duration(std::span<const uint8_t> packet) {
  if (packet.empty()) return 0;
  const int config = packet[0] >> 3, code = packet[0] & 3;
  const int64_t frame = config < 12   ? (config % 4 == 3 ? 2880 : int64_t{480} << config % 4)
                        : config < 16 ? int64_t{480} << config % 2
                                      : int64_t{120} << config % 4;
  const int64_t count = code == 0 ? 1 : code < 3 ? 2 : packet.size() > 1 ? packet[1] & 63 : 0;
  return frame * count > 5760 ? 0 : frame * count;
}

// Coded by SILK, alone or for the low half of the band (hybrid); otherwise by CELT alone. REQUIRES:
// not empty.
inline bool opus_uses_silk(std::span<const uint8_t> packet) { return packet[0] >> 3 < 16; }

}  // namespace headrace
