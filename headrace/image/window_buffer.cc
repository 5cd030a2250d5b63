// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/window_buffer.h"

#include <array>

#include "headrace/image/planar_row.h"
#include "headrace/kernels/rows.h"

namespace headrace {
namespace {

ptrdiff_t padded_stride(int samples) { return (ptrdiff_t{samples} + 63) / 64 * 64; }

}  // namespace

void WindowBuffer::begin(int channels, int width, int height) {
  channels_ = channels;
  width_ = width;
  height_ = height;
  stride_ = padded_stride(width);
  transposed_stride_ = padded_stride(height);
  kept_.resize(size_t(channels) * height * stride_);
  transposed_.resize(size_t(channels) * width * transposed_stride_);
}

void WindowBuffer::rows(const RowBlock& block) {
  const size_t plane = size_t(height_) * stride_;
  for (int row = 0; row < block.count; ++row) {
    uint8_t* const to = kept_.data() + size_t(block.y + row) * stride_;
    std::array<uint8_t*, kMostChannels> out;
    for (int c = 0; c < channels_; ++c) out[size_t(c)] = to + size_t(c) * plane;
    copy_planar_row(block, row, channels_, width_, out.data());
  }
}

RowBlock WindowBuffer::transposed() {
  RowBlock block{.count = width_, .stride = transposed_stride_};
  for (int c = 0; c < channels_; ++c) {
    uint8_t* const to = transposed_.data() + size_t(c) * width_ * transposed_stride_;
    transpose_plane(kept_.data() + size_t(c) * height_ * stride_, stride_, width_, height_, to,
                    transposed_stride_);
    block.channel[c] = to;
  }
  return block;
}

void WindowBuffer::free() {
  kept_.free();
  transposed_.free();
}

size_t WindowBuffer::working_bytes(int channels, int width, int height) {
  return channels * (size_t(height) * padded_stride(width) + size_t(width) * padded_stride(height));
}

}  // namespace headrace
