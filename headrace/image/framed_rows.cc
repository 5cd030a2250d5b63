// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/framed_rows.h"

#include <algorithm>
#include <cstring>

#include "headrace/image/planar_row.h"

namespace headrace {
namespace {

constexpr size_t kBorderRow = 0, kPictureRow = 1;

// A copied row may run over its end by less than a vector.
ptrdiff_t framed_plane(int width) { return (ptrdiff_t{width} + 63 + 63) / 64 * 64; }

}  // namespace

void FramedRows::begin(RowSink& to, const Window& wanted, const Window& picture, int channels,
                       const std::array<uint8_t, kMostChannels>& fill) {
  to_ = &to;
  channels_ = channels;
  height_ = wanted.height;
  next_ = 0;
  const Window both = common(wanted, picture);
  needed_ = both.empty() ? both : seen_from(picture.x, picture.y, both);
  left_ = both.x - wanted.x;
  top_ = both.empty() ? height_ : both.y - wanted.y;
  plane_ = framed_plane(wanted.width);
  rows_.resize(2 * size_t(channels) * size_t(plane_));
  for (size_t row = 0; row < 2 * size_t(channels); ++row) {
    std::memset(rows_.data() + row * size_t(plane_), fill[row % size_t(channels)], size_t(plane_));
  }
}

void FramedRows::rows(const RowBlock& block) {
  border_until(top_);
  const size_t right = size_t(left_ + needed_.width);
  const size_t beyond = std::min(size_t{63}, size_t(plane_) - right);
  for (int row = 0; row < block.count; ++row) {
    std::array<uint8_t*, kMostChannels> out{};
    for (int c = 0; c < channels_; ++c) {
      out[size_t(c)] =
          rows_.data() + (kPictureRow * size_t(channels_) + size_t(c)) * plane_ + left_;
    }
    copy_planar_row(block, row, channels_, needed_.width, out.data());
    for (int c = 0; c < channels_; ++c) {  // what the copy may have run over
      uint8_t* const plane = out[size_t(c)] - left_;
      std::memset(plane + right, rows_.data()[size_t(c) * size_t(plane_)], beyond);
    }
    send(kPictureRow);
  }
}

void FramedRows::finish() { border_until(height_); }

void FramedRows::border_until(int y) {
  while (next_ < y) send(kBorderRow);
}

void FramedRows::send(size_t which) {
  RowBlock block{.y = next_++, .count = 1, .stride = plane_};
  for (int c = 0; c < channels_; ++c) {
    block.channel[size_t(c)] = rows_.data() + (which * size_t(channels_) + size_t(c)) * plane_;
  }
  to_->rows(block);
}

size_t FramedRows::working_bytes(int channels, int width) {
  return 2 * size_t(channels) * size_t(framed_plane(width));
}

}  // namespace headrace
