// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/planar_row.h"

#include <cstring>

#include "headrace/kernels/rows.h"

namespace headrace {

void copy_planar_row(const RowBlock& block, int row, int channels, int count,
                     uint8_t* const out[]) {
  const uint8_t* const first = block.channel[0] + row * block.stride;
  bool interleaved = block.step == channels && channels > 1 && channels <= 4;
  for (int c = 0; c < channels; ++c) interleaved &= block.channel[c] == block.channel[0] + c;
  if (interleaved) return deinterleave_row(first, channels, count, out);
  for (int c = 0; c < channels; ++c) {
    const uint8_t* const in = block.channel[c] + row * block.stride;
    if (block.step == 1) {
      std::memcpy(out[c], in, count);
    } else {
      for (int i = 0; i < count; ++i) out[c][i] = in[i * block.step];
    }
  }
}

}  // namespace headrace
