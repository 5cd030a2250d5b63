// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/device/draft.h"

#include <algorithm>
#include <bit>

#include "headrace/codecs/image/jpeg/decode/row_index.h"
#include "headrace/codecs/image/jpeg/device/code.h"
#include "headrace/codecs/image/jpeg/device/rows.h"
#include "headrace/codecs/image/jpeg/headers/header.h"
#include "headrace/codecs/image/jpeg/headers/plane.h"

namespace headrace {
namespace {

constexpr int64_t aligned(int64_t bytes) { return (bytes + 15) / 16 * 16; }

int shift_of(int factor) { return std::countr_zero(unsigned(factor)); }

bool is_power_of_two(int factor) { return std::has_single_bit(unsigned(factor)); }

// What becomes of a file's colours, and of how many channels a row then is.
DeviceColor device_color(JpegColor file, ColorMode wanted) {
  const bool gray = wanted == ColorMode::kGray;
  if (file == JpegColor::kYCbCr) return gray ? DeviceColor::kGrayFromYcc : DeviceColor::kRgbFromYcc;
  if (file == JpegColor::kRGB && gray) return DeviceColor::kGrayFromRgb;
  return DeviceColor::kAsTheyAre;
}

int channels_wanted(JpegColor file, ColorMode wanted) {
  if (wanted == ColorMode::kGray) return 1;
  return file == JpegColor::kGray && wanted == ColorMode::kStored ? 1 : 3;
}

// Two sets of codes, one a bit of the picture's pattern.
bool find_codes(const JpegHeader& header, JpegDeviceDraft& draft) {
  const JpegFrame& frame = header.frame;
  const auto is_set = [&](int c, int of) {
    return header.dc_slot[c] == header.dc_slot[of] && header.ac_slot[c] == header.ac_slot[of];
  };
  int second = 0;  // the component whose codes are the second set
  DevicePicture& picture = draft.picture;
  for (int c = 0; c < frame.count; ++c) {
    const JpegComponent& component = frame.component[c];
    if (!is_power_of_two(component.h) || !is_power_of_two(component.v)) return false;
    if (!is_set(c, 0)) {
      if (second > 0 && !is_set(c, second)) return false;
      if (second == 0) second = c;
    }
    for (int b = component.h * component.v; b > 0; --b, ++picture.blocks) {
      picture.pattern |= uint32_t(!is_set(c, 0)) << picture.blocks;
    }
  }
  const auto make = [&](size_t place, int c) {
    const HuffmanSpec& dc = header.tables.dc[header.dc_slot[c]];
    const HuffmanSpec& ac = header.tables.ac[header.ac_slot[c]];
    return make_device_code(dc, HuffmanUse::kDC, draft.codes[place]) &&
           make_device_code(ac, HuffmanUse::kAC, draft.codes[place + 2]);
  };
  return make(0, 0) && make(1, second);
}

// Returns the row of MCUs after the last that is walked.
int find_planes(const JpegFrame& frame, JpegDeviceDraft& draft) {
  DevicePicture& picture = draft.picture;
  const Window window{picture.x, picture.y, picture.width, picture.height};
  int first_mcu_row = frame.mcus_high, end_mcu_row = 0, first_block = 0;
  for (int c = 0; c < frame.count; ++c) {
    const JpegComponent& component = frame.component[c];
    const JpegPlane plane = jpeg_plane(frame, component, window);
    DevicePlane& to = picture.plane[c];
    to.first_column = plane.left / 8;
    to.columns = plane.right / 8 + 1 - to.first_column;
    to.first_row = plane.top / 8;
    to.rows = plane.bottom / 8 + 1 - to.first_row;
    to.first_block = first_block;
    to.h_shift = shift_of(component.h);
    to.v_shift = shift_of(component.v);
    to.width = plane.width;
    to.height = plane.height;
    to.upsampling = plane.upsampling;
    to.h_ratio_shift = shift_of(plane.h_ratio);
    to.v_ratio_shift = shift_of(plane.v_ratio);
    to.stride = to.columns * 8;
    first_block += component.h * component.v;
    first_mcu_row = std::min(first_mcu_row, to.first_row >> to.v_shift);
    end_mcu_row = std::max(end_mcu_row, ((to.first_row + to.rows - 1) >> to.v_shift) + 1);
    picture.mcu_columns =
        std::max(picture.mcu_columns, ((to.first_column + to.columns - 1) >> to.h_shift) + 1);
    // Values above 32767 wrap, as in libjpeg.
    std::ranges::copy(component.quantization, draft.quantizations[size_t(c)].begin());
  }
  picture.first_mcu_row = first_mcu_row;
  return end_mcu_row;
}

}  // namespace

int64_t JpegDeviceDraft::sample_bytes(int component) const {
  const DevicePlane& plane = picture.plane[component];
  return aligned(int64_t{plane.stride} * plane.rows * 8);
}

int64_t JpegDeviceDraft::out_bytes() const {
  return aligned(int64_t{picture.out_plane} * picture.channels);
}

bool make_device_draft(std::span<const uint8_t> bytes, std::span<const uint8_t> row_index,
                       const Window& window, ColorMode color, JpegDeviceDraft& draft,
                       std::vector<uint32_t>& streams) {
  JpegHeader header;
  JpegRowIndex index;
  const JpegFrame& frame = header.frame;
  if (!read_jpeg_header(bytes, header)) return false;
  if (!is_inside(window, frame.width, frame.height)) return false;
  if (!index.parse(row_index, frame.mcus_wide, frame.mcus_high, header.restart_interval,
                   bytes.size())) {
    return false;
  }
  draft = {};
  DevicePicture& picture = draft.picture;
  picture.x = window.x;
  picture.y = window.y;
  picture.width = window.width;
  picture.height = window.height;
  picture.margin = window.x % 8;
  picture.out_stride = (picture.margin + window.width + 7) / 8 * 8;
  picture.components = frame.count;
  picture.channels = channels_wanted(frame.color, color);
  picture.color = device_color(frame.color, color);
  if (int64_t{picture.out_stride} * window.height > INT32_MAX / 4) return false;
  picture.out_plane = picture.out_stride * window.height;
  if (!find_codes(header, draft)) return false;
  const int end_mcu_row = find_planes(frame, draft);

  const size_t words_before = streams.size();
  const JpegDeviceRows rows{.bytes = bytes,
                            .header = header,
                            .index = index,
                            .first = picture.first_mcu_row,
                            .end = end_mcu_row,
                            .columns = picture.mcu_columns,
                            .blocks = picture.blocks};
  draft.blocks = add_device_rows(rows, draft.row_jobs, streams);
  if (draft.blocks < 0) {
    streams.resize(words_before);
    return false;
  }
  return true;
}

}  // namespace headrace
