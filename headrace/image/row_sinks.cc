// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/row_sinks.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "headrace/kernels/rows.h"

namespace headrace {
namespace {

constexpr size_t kBorderRow = 0, kPictureRow = 1;

// Copies may write past a row's end by less than a vector.
ptrdiff_t framed_plane(int width) { return (ptrdiff_t{width} + 63 + 63) / 64 * 64; }

ptrdiff_t padded_stride(int samples) { return (ptrdiff_t{samples} + 63) / 64 * 64; }

template <class Sample>
void copy_samples(const uint8_t* in, ptrdiff_t step, int count, uint8_t* out) {
  for (int i = 0; i < count; ++i) {
    std::memcpy(out + size_t(i) * sizeof(Sample), in + i * step, sizeof(Sample));
  }
}

}  // namespace

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

void SharedRows::begin(const Window& window) {
  window_ = window;
  parts_.clear();
}

void SharedRows::add(RowSink& sink, const Window& part) { parts_.push_back({&sink, part}); }

void SharedRows::rows(const RowBlock& block) {
  for (const auto& [sink, part] : parts_) {
    const int top = part.y - window_.y;
    const int first = std::max(block.y, top);
    const int end = std::min(block.y + block.count, top + part.height);
    if (first >= end) continue;
    RowBlock its = block;
    its.y = first - top;
    its.count = end - first;
    const ptrdiff_t skipped = (first - block.y) * block.stride + (part.x - window_.x) * block.step;
    for (const uint8_t*& channel : its.channel) {
      if (channel) channel += skipped;
    }
    sink->rows(its);
  }
}

void OpaqueRows::rows(const RowBlock& block) {
  const size_t bytes = size_t(std::abs(block.stride)) * size_t(block.count);
  if (opaque_.size() < bytes) {
    opaque_.resize(bytes);
    std::memset(opaque_.data(), 255, bytes);
  }
  RowBlock with_alpha = block;
  with_alpha.channel[3] = opaque_.data();
  if (block.stride < 0) with_alpha.channel[3] -= block.stride * (block.count - 1);
  to_->rows(with_alpha);
}

void FramedRows::begin(RowSink& to, const Window& wanted, const Window& picture, int channels,
                       const std::array<uint8_t, kMaxChannels>& fill) {
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
    std::array<uint8_t*, kMaxChannels> out{};
    for (int c = 0; c < channels_; ++c) {
      out[size_t(c)] =
          rows_.data() + (kPictureRow * size_t(channels_) + size_t(c)) * plane_ + left_;
    }
    copy_planar_row(block, row, channels_, needed_.width, out.data());
    for (int c = 0; c < channels_; ++c) {  // may have been overwritten by the copy
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
    std::array<uint8_t*, kMaxChannels> out;
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
