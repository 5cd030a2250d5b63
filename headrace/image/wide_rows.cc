// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/wide_rows.h"

#include <cstring>

namespace headrace {
namespace {

template <class Sample>
void copy_samples(const uint8_t* in, ptrdiff_t step, int count, uint8_t* out) {
  for (int i = 0; i < count; ++i) {
    std::memcpy(out + size_t(i) * sizeof(Sample), in + i * step, sizeof(Sample));
  }
}

}  // namespace

void WideRows::begin(int channels, int width, int height, DType dtype) {
  picture_.channels = channels;
  picture_.height = height;
  picture_.width = width;
  picture_.dtype = dtype;
  picture_.pixels.resize(size_t(channels) * picture_.plane_bytes());
}

void WideRows::rows(const RowBlock& block) {
  const size_t sample = size_of(picture_.dtype), row_bytes = size_t(picture_.width) * sample;
  for (int c = 0; c < picture_.channels; ++c) {
    uint8_t* to = picture_.plane(c) + size_t(block.y) * row_bytes;
    const uint8_t* in = block.channel[size_t(c)];
    for (int row = 0; row < block.count; ++row, to += row_bytes, in += block.stride) {
      if (sample == 2) {
        copy_samples<uint16_t>(in, block.step, picture_.width, to);
      } else {
        copy_samples<float>(in, block.step, picture_.width, to);
      }
    }
  }
}

}  // namespace headrace
