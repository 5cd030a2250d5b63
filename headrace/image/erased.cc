// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/erased.h"

#include <cstring>
#include <vector>

#include "headrace/image/pixel_map.h"
#include "headrace/kernels/noise_rows.h"

namespace headrace {

void store_erased(const Erased& erased, int channels, int height, int width, DType dtype,
                  bool channels_last, void* picture) {
  const size_t size = size_of(dtype);
  const bool planar = !channels_last;
  const size_t column = size * (planar ? 1 : size_t(channels)), row = column * size_t(width);
  const size_t channel = planar ? row * size_t(height) : size;
  const Window& window = erased.window;
  std::vector<float> noise(erased.noise ? size_t(noise_room(window.width)) : 0);
  for (int c = 0; c < channels; ++c) {
    uint8_t value[8];
    if (!erased.noise) store_value(erased.values[size_t(c)], dtype, value);
    uint8_t* const plane = static_cast<uint8_t*>(picture) + channel * size_t(c);
    for (int y = window.y; y < window.y + window.height; ++y) {
      uint8_t* to = plane + row * size_t(y) + column * size_t(window.x);
      if (erased.noise) {
        normal_row(*erased.noise, static_cast<uint32_t>(c * window.height + y - window.y),
                   window.width, noise.data());
      }
      for (int x = 0; x < window.width; ++x, to += column) {
        if (erased.noise) store_value(noise[size_t(x)], dtype, value);
        std::memcpy(to, value, size);
      }
    }
  }
}

}  // namespace headrace
