// SPDX-License-Identifier: Apache-2.0
// Opus packets, and the position in an Ogg file at which decoding for a window has to start.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

// A packet's samples at 48 kHz, from its first two bytes (RFC 6716, 3.1); 0 if not a valid packet.
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

// CELT frames predict the energy of later ones, an effect that fades within half a second. (The 80
// ms of RFC 7845, 4.6, leave noise at a tenth of full scale.)
inline constexpr int64_t kOpusPreroll = 48000 / 2;
// SILK's rounding errors feed back, so the effect of where decoding started never fades: samples
// are the same as after a full decode only if it started at the beginning, or at a CELT-only frame,
// after which SILK is reset. If both are more than kFarthestSilk frames before the window, decoding
// starts kSilkPreroll frames before it, and samples are within 1e-2 of a full decode's.
inline constexpr int64_t kFarthestSilk = int64_t{60} * 48000;
inline constexpr int64_t kSilkPreroll = int64_t{2} * 48000;

// The frame, in the file's numbering, where decoding must start for a window at `begin`. Reads page
// and packet headers up to there; does not check for damaged pages.
Result<int64_t> opus_start(const ByteRanges& file, int64_t begin);

}  // namespace headrace
