// SPDX-License-Identifier: Apache-2.0
// The rows around a row of one channel, with borders, as read by neighborhood filters. Holds as
// many rows as the filter is high.
#pragma once

#include <algorithm>
#include <vector>

#include "headrace/image/padding.h"

namespace headrace {

class PaddedRows {
 public:
  // `size`: edge of the neighborhood, odd.
  PaddedRows(const Picture& picture, int size, Padding padding)
      : picture_(picture),
        size_(size),
        padding_(padding),
        stride_(size_t(picture.width) + size_t(size) + kPadding),
        ring_(stride_ * size_t(size)),
        rows_(size_t(size)) {}

  // The rows around `y` of a channel, each starting half a neighborhood to the left of the picture,
  // with 64 bytes of padding at the end. Valid until the next call. REQUIRES: in each channel, y
  // counts up from 0 by one.
  const uint8_t* const* around(int channel, int y) {
    const int half = size_ / 2;
    for (int next = y == 0 ? -half : y + half; next <= y + half; ++next) fill(channel, next);
    for (int r = 0; r < size_; ++r) rows_[size_t(r)] = slot(y - half + r);
    return rows_.data();
  }

 private:
  static constexpr size_t kPadding = 64;

  uint8_t* slot(int y) { return ring_.data() + stride_ * size_t((y + size_) % size_); }

  void fill(int channel, int y) {
    const int half = size_ / 2, width = picture_.width;
    const uint8_t* const from = picture_.plane(channel) +
                                size_t(width) * size_t(padded_index(padding_, y, picture_.height));
    uint8_t* const to = slot(y) + half;
    std::copy_n(from, width, to);
    for (int x = 1; x <= half; ++x) {
      to[-x] = from[padded_index(padding_, -x, width)];
      to[width - 1 + x] = from[padded_index(padding_, width - 1 + x, width)];
    }
  }

  const Picture& picture_;
  const int size_;
  const Padding padding_;
  const size_t stride_;
  std::vector<uint8_t> ring_;
  std::vector<const uint8_t*> rows_;
};

}  // namespace headrace
