// SPDX-License-Identifier: Apache-2.0
// Rearranges 8-bit rows: interleaved to planar, mirrored, transposed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

// Sample i of channel c is in[i * channels + c]; it goes to out[c][i]. 1 <= channels <= 4. Reads no
// byte past the row; may write up to 63 bytes past each plane's row.
void deinterleave_row(const uint8_t* in, int channels, int count, uint8_t* const out[]);
// out[i] = in[count - 1 - i]. REQUIRES: no overlap.
void mirror_row(const uint8_t* in, int count, uint8_t* out);
// out(x, y) = in(y, x), for a width x height input of rows `stride` bytes apart; the output's rows
// are out_stride apart.
void transpose_plane(const uint8_t* in, ptrdiff_t stride, int width, int height, uint8_t* out,
                     ptrdiff_t out_stride);

}  // namespace headrace
