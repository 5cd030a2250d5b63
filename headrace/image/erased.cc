// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/erased.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "headrace/image/pixel_map.h"
#include "headrace/kernels/noise_rows.h"

namespace headrace {
namespace {

// A row of one channel: `step` elements from one column to the next.
template <class Element>
void fill_row(const void* value, int count, size_t step, uint8_t* row) {
  Element element;
  std::memcpy(&element, value, sizeof(element));
  auto* const to = reinterpret_cast<Element*>(row);
  if (step == 1) return static_cast<void>(std::fill_n(to, count, element));
  for (size_t x = 0; x < size_t(count); ++x) to[x * step] = element;
}

}  // namespace

void store_erased(const Erased& erased, int channels, int height, int width, DType dtype,
                  bool channels_last, void* picture) {
  const size_t size = size_of(dtype), step = channels_last ? size_t(channels) : 1;
  const size_t column = size * step, row = column * size_t(width);
  const size_t channel = channels_last ? size : row * size_t(height);
  const Window& window = erased.window;
  std::vector<float> noise(erased.noise ? size_t(noise_room(window.width)) : 0);
  for (int c = 0; c < channels; ++c) {
    uint8_t value[8];
    if (!erased.noise) store_value(erased.values[size_t(c)], dtype, value);
    uint8_t* const plane = static_cast<uint8_t*>(picture) + channel * size_t(c);
    for (int y = 0; y < window.height; ++y) {
      uint8_t* to = plane + row * size_t(window.y + y) + column * size_t(window.x);
      if (erased.noise) {
        normal_row(*erased.noise, static_cast<uint32_t>(c * window.height + y), window.width,
                   noise.data());
        for (int x = 0; x < window.width; ++x, to += column) {
          store_value(noise[size_t(x)], dtype, to);
        }
      } else if (size == 1) {
        fill_row<uint8_t>(value, window.width, step, to);
      } else if (size == 2) {
        fill_row<uint16_t>(value, window.width, step, to);
      } else {
        fill_row<float>(value, window.width, step, to);
      }
    }
  }
}

}  // namespace headrace
