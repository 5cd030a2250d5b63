// SPDX-License-Identifier: Apache-2.0
// Where the decoding of Opus in Ogg has to begin for a window.
#pragma once

#include <cstdint>

#include "headrace/base/error.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

// Frames of CELT predict the energy of those after them, which is forgotten after half a second
// (the 80 ms of RFC 7845, 4.6, leave a tenth of full scale of noise).
inline constexpr int64_t kOpusPreroll = 48000 / 2;
// SILK computes in integers that feed on their own roundings: it never forgets where it began, and
// gives the samples of the whole file only from the begin or from frames of CELT alone on, after
// which it starts anew. Where these are further away than so many frames, so much is decoded
// before the window, which then is within 1e-2 of the whole.
inline constexpr int64_t kFarthestSilk = int64_t{60} * 48000;
inline constexpr int64_t kSilkPreroll = int64_t{2} * 48000;

// The frame, as the file counts them, for a window that begins at `begin`; damaged pages are not
// looked for. Looks at the heads of pages and packets up to there.
Result<int64_t> opus_start(const ByteRanges& file, int64_t begin);

}  // namespace headrace
