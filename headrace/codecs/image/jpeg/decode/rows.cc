// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/decode/rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "headrace/kernels/color/planar_color.h"
#include "headrace/kernels/jpeg/upsample.h"

namespace headrace {
namespace {

constexpr int kGroup = 8;  // rows delivered at once, few enough to stay in the L1 cache
// Kernels read and write beyond a row's samples, up to 64 bytes before and 128 after.
constexpr int kPadAfter = 192, kPadBefore = 64;

constexpr ptrdiff_t rounded_up(ptrdiff_t value, ptrdiff_t to) { return (value + to - 1) / to * to; }

}  // namespace

size_t JpegRows::Plane::bytes() const {
  return kPadBefore + size_t(rows + 1) * size_t(stride) + kPadAfter;
}

JpegRows::Plane JpegRows::plane_of(const JpegFrame& frame, const JpegComponent& component,
                                   const Window& window) {
  Plane plane;
  static_cast<JpegPlane&>(plane) = jpeg_plane(frame, component, window);
  const int right = window.x + window.width - 1;
  plane.columns = {plane.first_column(), plane.right / 8 + 1};
  const int first = window.x / plane.h_ratio;
  plane.from = first - 8 * plane.columns.first;
  plane.count = right / plane.h_ratio - first + 1;
  plane.surplus = window.x - first * plane.h_ratio;
  plane.stride = rounded_up(8 * plane.columns.count(), 64) + kPadAfter;
  return plane;
}

void JpegRows::begin(const JpegFrame& frame, const Window& window, ColorMode color, RowSink* sink) {
  window_ = window;
  file_color_ = frame.color;
  color_ = color;
  sink_ = sink;
  count_ = frame.count;
  mcu_height_ = 8 * frame.v_max;
  next_ = 0;
  reads_row_below_ = false;
  first_mcu_row_ = frame.mcus_high;
  end_mcu_row_ = 0;
  bool upsamples = false;
  for (int c = 0; c < count_; ++c) {
    Plane& plane = planes_[c] = plane_of(frame, frame.component[c], window);
    first_mcu_row_ = std::min(first_mcu_row_, plane.top / plane.rows);
    end_mcu_row_ = std::max(end_mcu_row_, plane.bottom / plane.rows + 1);
    reads_row_below_ |= plane.reads_vertical_neighbors();
    upsamples |= plane.upsampling != Upsampling::kNone;
  }

  const bool gray = color == ColorMode::kGray;
  conversion_ = Conversion::kNone;
  channels_ = gray ? 1 : 3;
  switch (frame.color) {
    case JpegColor::kGray:
      if (color == ColorMode::kStored) channels_ = 1;
      break;
    case JpegColor::kYCbCr:
      conversion_ = gray ? Conversion::kGrayFromYcc : Conversion::kRgbFromYcc;
      break;
    case JpegColor::kRGB:
      if (gray) conversion_ = Conversion::kGrayFromRgb;
      break;
    case JpegColor::kCMYK:
    case JpegColor::kYCCK:
      conversion_ = Conversion::kInks;
      if (color == ColorMode::kStored) channels_ = 4;
      break;
  }
  in_place_ = conversion_ == Conversion::kNone && !upsamples;
  place_buffers();
}

void JpegRows::place_buffers() {
  row_ = rounded_up(window_.width, 64);
  delivered_stride_ = channels_ * row_;
  const size_t wide_bytes = size_t(row_) + kPadAfter;
  size_t bytes = 0;
  for (int c = 0; c < count_; ++c) bytes += planes_[c].bytes();
  if (!in_place_) {
    bytes += count_ * wide_bytes + between_.size() * size_t(row_);
    bytes += kGroup * size_t(delivered_stride_) + kPadAfter;
  }
  memory_.resize(bytes);

  uint8_t* next = memory_.data();
  for (int c = 0; c < count_; ++c) {
    planes_[c].samples = next + kPadBefore + planes_[c].stride;
    next += planes_[c].bytes();
  }
  if (in_place_) return;
  for (int c = 0; c < count_; ++c, next += wide_bytes) wide_[c] = next;
  for (uint8_t*& row : between_) row = std::exchange(next, next + row_);
  for (int c = 0; c < channels_; ++c) delivered_[c] = next + c * row_;
}

JpegRows::Place JpegRows::place(int c, int y) {
  const Plane& plane = planes_[c];
  return {plane.samples + 8 * y % plane.rows * plane.stride, plane.stride};
}

void JpegRows::finish(int m) {
  for (int c = 0; c < count_; ++c) {
    if (planes_[c].reads_horizontal_neighbors()) repeat_edges(planes_[c], m);
  }
  int end = window_.height;
  if (m + 1 < end_mcu_row_) {
    end = std::min(end, (m + 1) * mcu_height_ - (reads_row_below_ ? 1 : 0) - window_.y);
  }
  while (next_ < end) {
    const int count = in_place_ ? end - next_ : std::min(kGroup, end - next_);
    deliver(next_, count, m);
    next_ += count;
  }
  if (!reads_row_below_) return;
  for (int c = 0; c < count_; ++c) {
    const Plane& plane = planes_[c];
    std::memcpy(plane.samples - plane.stride - 1,
                plane.samples + (plane.rows - 1) * plane.stride - 1,
                size_t(plane.columns.count()) * 8 + 2);
  }
}

// Repeats the component's last column, because the block's samples beyond it must not be visible.
void JpegRows::repeat_edges(Plane& plane, int m) const {
  const int first = std::max(0, plane.top - m * plane.rows);
  const int end = std::min(plane.rows, plane.bottom + 1 - m * plane.rows);
  const ptrdiff_t last = plane.width - 1 - 8 * plane.columns.first;
  for (int i = first; i < end; ++i) {
    uint8_t* const row = plane.samples + i * plane.stride;
    if (plane.left == 0) row[-1] = row[0];
    if (plane.right == plane.width - 1) row[last + 1] = row[last];
  }
}

void JpegRows::deliver(int y, int count, int m) {
  RowBlock block{.y = y, .count = count};
  if (in_place_) {
    block.stride = planes_[0].stride;
    for (int c = 0; c < channels_; ++c) block.channel[c] = full_row(std::min(c, count_ - 1), y, m);
    return sink_->rows(block);
  }
  block.stride = delivered_stride_;
  for (int i = 0; i < count; ++i) {
    Rows in{};
    OutRows out{};
    for (int c = 0; c < count_; ++c) in[c] = full_row(c, y + i, m);
    for (int c = 0; c < channels_; ++c) out[c] = delivered_[c] + i * delivered_stride_;
    convert(in, out);
  }
  for (int c = 0; c < channels_; ++c) block.channel[c] = delivered_[c];
  sink_->rows(block);
}

// Row y of the window of component c, upsampled to the width of the window.
const uint8_t* JpegRows::full_row(int c, int y, int m) {
  const Plane& plane = planes_[c];
  const int full = window_.y + y;
  const int sample_row = plane.v_ratio == 1   ? full
                         : plane.v_ratio == 2 ? full >> 1
                                              : full / plane.v_ratio;
  const auto row_at = [&](int row) {
    return plane.samples + plane.from + (row - m * plane.rows) * plane.stride;
  };
  const uint8_t* const near = row_at(sample_row);
  const bool lower = full % 2 == 1;
  const auto far = [&] {
    return row_at(lower ? std::min(plane.height - 1, sample_row + 1) : std::max(0, sample_row - 1));
  };
  uint8_t* const out = wide_[c];
  switch (plane.upsampling) {
    case Upsampling::kNone:
      return near;
    case Upsampling::kH2V1:
      upsample_h2v1(near, plane.count, out);
      break;
    case Upsampling::kH1V2:
      upsample_h1v2(near, far(), lower, plane.count, out);
      break;
    case Upsampling::kH2V2:
      upsample_h2v2(near, far(), plane.count, out);
      break;
    case Upsampling::kRepeat:
      if (plane.h_ratio == 1) return near;
      upsample_repeat(near, plane.count, plane.h_ratio, out);
      break;
  }
  return out + plane.surplus;
}

void JpegRows::convert(const Rows& in, const OutRows& out) {
  const int width = window_.width;
  switch (conversion_) {
    case Conversion::kNone:
      for (int c = 0; c < channels_; ++c) std::memcpy(out[c], in[c], size_t(width));
      return;
    case Conversion::kRgbFromYcc:
      return rgb_from_ycc_rows(in.data(), width, out.data());
    case Conversion::kGrayFromYcc:
      rgb_from_ycc_rows(in.data(), width, between_.data());
      return gray_from_rgb_rows(between_.data(), width, out[0]);
    case Conversion::kGrayFromRgb:
      return gray_from_rgb_rows(in.data(), width, out[0]);
    case Conversion::kInks:
      return convert_inks(in, out);
  }
}

// Pillow assumes that inks are stored inverted, as Adobe does. To libjpeg, YCCK is the YCbCr of the
// inks' complement, so its conversion to RGB gives Pillow's inks.
void JpegRows::convert_inks(const Rows& in, const OutRows& out) {
  const int width = window_.width;
  uint8_t* const* const cmy = color_ == ColorMode::kStored ? out.data() : between_.data();
  if (file_color_ == JpegColor::kYCCK) {
    rgb_from_ycc_rows(in.data(), width, cmy);
  } else {
    for (int c = 0; c < 3; ++c) complement_row(in[c], width, cmy[c]);
  }
  if (color_ == ColorMode::kStored) return complement_row(in[3], width, out[3]);
  uint8_t* const* const rgb = color_ == ColorMode::kRGB ? out.data() : cmy;
  rgb_from_cmy_rows(cmy, in[3], width, rgb);
  if (color_ == ColorMode::kGray) gray_from_rgb_rows(rgb, width, out[0]);
}

size_t JpegRows::working_bytes(const JpegFrame& frame) {
  const Window all{0, 0, frame.width, frame.height};
  const size_t row = size_t(rounded_up(frame.width, 64));
  size_t bytes = (3 + 4 * kGroup) * row + kPadAfter;
  for (int c = 0; c < frame.count; ++c) {
    bytes += plane_of(frame, frame.component[c], all).bytes() + row + kPadAfter;
  }
  return bytes;
}

}  // namespace headrace
