// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/padding.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace headrace {
namespace {

template <class Sample>
void pad_row(const Sample* in, const std::vector<int>& columns, Sample* out) {
  for (size_t x = 0; x < columns.size(); ++x) out[x] = in[columns[x]];
}

}  // namespace

int padded_index(Padding padding, int64_t at, int size) {
  if (padding == Padding::kEdge) return static_cast<int>(std::clamp<int64_t>(at, 0, size - 1));
  const int64_t ends =
      padding == Padding::kSymmetric ? 1 : 0;  // whether the end pixels are repeated
  const int64_t period = 2 * (size - 1 + ends);
  if (period == 0) return 0;
  at = (at % period + period) % period;
  return static_cast<int>(at < size ? at : period - ends - at);
}

std::shared_ptr<const Picture> padded_part(const Picture& picture, Padding padding,
                                           const Window& window) {
  auto out =
      std::make_shared<Picture>(picture.channels, window.height, window.width, picture.dtype);
  std::vector<int> columns(static_cast<size_t>(window.width));
  for (int x = 0; x < window.width; ++x) {
    columns[size_t(x)] = padded_index(padding, int64_t{window.x} + x, picture.width);
  }
  const size_t sample = size_of(picture.dtype), row = sample * size_t(picture.width);
  for (int c = 0; c < picture.channels; ++c) {
    uint8_t* to = out->plane(c);
    for (int y = 0; y < window.height; ++y, to += sample * columns.size()) {
      const int from = padded_index(padding, int64_t{window.y} + y, picture.height);
      const uint8_t* const in = picture.plane(c) + row * size_t(from);
      if (sample == 1) {
        pad_row(in, columns, to);
      } else if (sample == 2) {
        pad_row(reinterpret_cast<const uint16_t*>(in), columns, reinterpret_cast<uint16_t*>(to));
      } else {
        pad_row(reinterpret_cast<const float*>(in), columns, reinterpret_cast<float*>(to));
      }
    }
  }
  return out;
}

}  // namespace headrace
