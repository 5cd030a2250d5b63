// SPDX-License-Identifier: Apache-2.0
// Where decoding of Opus in Ogg has to start for a window.
#pragma once

#include <cstdint>

#include "headrace/base/error.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

// CELT frames predict the energy of later ones, and the effect fades after half a second (with the
// 80 ms of RFC 7845, 4.6, noise at a tenth of full scale remains).
inline constexpr int64_t kOpusPreroll = 48000 / 2;
// SILK computes in integers with feedback of their rounding: its state never fades. It only gives
// the samples of the whole file if decoding starts at the beginning or at a CELT-only frame, after
// which it is reset. If these are further away than this many frames, that many are decoded before
// the window, which is then within 1e-2 of the whole file's samples.
inline constexpr int64_t kFarthestSilk = int64_t{60} * 48000;
inline constexpr int64_t kSilkPreroll = int64_t{2} * 48000;

// The frame, in the file's numbering, where decoding must start for a window at `begin`. Reads page
// and packet headers up to there; does not check for damaged pages.
Result<int64_t> opus_start(const ByteRanges& file, int64_t begin);

}  // namespace headrace
