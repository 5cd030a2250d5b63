// SPDX-License-Identifier: Apache-2.0
// Upsamples a subsampled component to the picture's width or height, by repetition or with the
// triangle filter that libjpeg-turbo calls fancy upsampling, to the last bit. Named as in libjpeg:
// h2v1 doubles the width, h1v2 the height, h2v2 both.
//
// Any thread may call these functions. Functions that double the width also read the sample before
// a row and the sample after it, which must repeat the edge's sample at an edge of the component.
// Vectors may read 64 bytes before a row, and read and write 128 bytes past it.
#pragma once

#include <cstdint>

namespace headrace {

// How a row of samples is widened to the picture, and which rows are combined.
enum class Upsampling : uint8_t { kNone, kRepeat, kH2V1, kH1V2, kH2V2 };

// count samples -> 2 * count.
void upsample_h2v1(const uint8_t* in, int count, uint8_t* out);

// One of the two output rows of a sample row: `near` is that row, `far` its neighbor above for the
// upper output row, below for the lower one; at an edge, the row itself.
void upsample_h2v2(const uint8_t* near, const uint8_t* far, int count, uint8_t* out);
void upsample_h1v2(const uint8_t* near, const uint8_t* far, bool lower, int count, uint8_t* out);

// count samples -> times * count, each repeated. 2 <= times <= 4.
void upsample_repeat(const uint8_t* in, int count, int times, uint8_t* out);

}  // namespace headrace
