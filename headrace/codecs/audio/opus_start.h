// SPDX-License-Identifier: Apache-2.0
// Finds where decoding of Opus in Ogg has to start for a window.
#pragma once

#include <cstdint>

#include "headrace/base/error.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

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
