// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/device/draft.h"

#include <algorithm>
#include <array>
#include <bit>

#include "headrace/codecs/image/jpeg/headers/plane.h"
#include "headrace/kernels/device_jpeg/device_image.h"
#include "headrace/kernels/jpeg/huffman.h"

namespace headrace {
namespace {

// How many index bits follow each entry of the first level: those of its longest code.
using SecondBits = std::array<uint8_t, WalkTables::kFirstSize>;

SecondBits second_bits_of(const HuffmanSpec& spec) {
  SecondBits bits{};
  uint32_t next = 0;
  for (int length = 1; length <= 16; ++length, next <<= 1) {
    const uint32_t count = spec.counts[length - 1];
    const int beyond = length - WalkTables::kFirstBits;
    if (beyond > 0 && count > 0) {
      const uint32_t first = next >> beyond, last = (next + count - 1) >> beyond;
      for (uint32_t entry = first; entry <= last; ++entry) bits[entry] = uint8_t(beyond);
    }
    next += count;
  }
  return bits;
}

// A file's Huffman code in the form from which a device builds its table. False for codes that
// libjpeg rejects, and for those whose long codes exceed a device's table.
bool make_device_code(const HuffmanSpec& spec, HuffmanUse use, DeviceCode& code) {
  if (!is_usable(spec, use)) return false;
  code = {};
  code.is_dc = use == HuffmanUse::kDC;
  std::ranges::copy(spec.symbols, code.symbols);
  uint32_t next = 0;
  int symbols = 0;
  for (int length = 1; length <= 16; ++length) {
    const int count = spec.counts[length - 1];
    code.offset[length] = symbols - static_cast<int>(next);
    symbols += count;
    next += uint32_t(count);
    code.limit[length] = next << (16 - length);
    next <<= 1;
  }

  // Codes ascend with their lengths, so entries with the same number of bits are adjacent.
  const SecondBits bits = second_bits_of(spec);
  uint32_t first = 0, second_size = 0;
  while (first < bits.size() && bits[first] == 0) ++first;
  code.first_long = first;
  for (uint32_t entry = first; entry < bits.size() && bits[entry] > 0; ++entry) {
    ++code.long_entries[bits[entry]];
    second_size += 1u << bits[entry];
  }
  return second_size <= uint32_t(WalkTables::kSecondSize);
}

constexpr int64_t aligned(int64_t bytes) { return (bytes + 15) / 16 * 16; }

int shift_of(int factor) { return std::countr_zero(unsigned(factor)); }

bool is_power_of_two(int factor) { return std::has_single_bit(unsigned(factor)); }

// The conversion of a file's colors, and the number of channels of a row afterwards.
DeviceColor device_color(JpegColor file, ColorMode wanted) {
  const bool gray = wanted == ColorMode::kGray;
  if (file == JpegColor::kYCbCr) return gray ? DeviceColor::kGrayFromYcc : DeviceColor::kRgbFromYcc;
  if (file == JpegColor::kRGB && gray) return DeviceColor::kGrayFromRgb;
  return DeviceColor::kUnconverted;
}

int channels_wanted(JpegColor file, ColorMode wanted) {
  if (wanted == ColorMode::kGray) return 1;
  return file == JpegColor::kGray && wanted == ColorMode::kStored ? 1 : 3;
}

}  // namespace

const DeviceCode* JpegDrafting::code_of(const HuffmanSpec& spec, HuffmanUse use, size_t place) {
  Code& last = codes_[place];
  if (!last.is_usable || last.spec != spec) {
    last.spec = spec;
    last.is_usable = make_device_code(spec, use, last.code);
  }
  return last.is_usable ? &last.code : nullptr;
}

// Finds the two sets of codes, between which a bit of the image's pattern selects.
bool JpegDrafting::find_codes(JpegDeviceDraft& draft) {
  const JpegHeader& header = header_;
  const JpegFrame& frame = header.frame;
  const auto is_set = [&](int c, int of) {
    return header.dc_slot[c] == header.dc_slot[of] && header.ac_slot[c] == header.ac_slot[of];
  };
  int second = 0;  // the component whose codes are the second set
  DeviceImage& image = draft.image;
  for (int c = 0; c < frame.count; ++c) {
    const JpegComponent& component = frame.component[c];
    if (!is_power_of_two(component.h) || !is_power_of_two(component.v)) return false;
    if (!is_set(c, 0)) {
      if (second > 0 && !is_set(c, second)) return false;
      if (second == 0) second = c;
    }
    for (int b = component.h * component.v; b > 0; --b, ++image.blocks) {
      image.pattern |= uint32_t(!is_set(c, 0)) << image.blocks;
    }
  }
  const auto make = [&](size_t place, int c) {
    const DeviceCode* const dc =
        code_of(header.tables.dc[header.dc_slot[c]], HuffmanUse::kDC, place);
    const DeviceCode* const ac =
        code_of(header.tables.ac[header.ac_slot[c]], HuffmanUse::kAC, place + 2);
    if (!dc || !ac) return false;
    draft.codes[place] = *dc;
    draft.codes[place + 2] = *ac;
    return true;
  };
  return make(0, 0) && make(1, second);
}

namespace {

void find_planes(const JpegFrame& frame, JpegDeviceDraft& draft, JpegDeviceRows& rows) {
  DeviceImage& image = draft.image;
  const Window window{image.x, image.y, image.width, image.height};
  int first_block = 0;
  rows.first = frame.mcus_high;
  rows.left = frame.mcus_wide;
  rows.end = rows.right = 0;
  for (int c = 0; c < frame.count; ++c) {
    const JpegComponent& component = frame.component[c];
    const JpegPlane plane = jpeg_plane(frame, component, window);
    DevicePlane& to = image.plane[c];
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
    rows.first = std::min(rows.first, to.first_row >> to.v_shift);
    rows.end = std::max(rows.end, ((to.first_row + to.rows - 1) >> to.v_shift) + 1);
    // The CPU starts there, too: so both start at the same entry, even if the index is wrong.
    rows.left = std::min(rows.left, plane.first_column() >> to.h_shift);
    rows.right = std::max(rows.right, ((to.first_column + to.columns - 1) >> to.h_shift) + 1);
    // Values above 32767 wrap, as in libjpeg.
    std::ranges::copy(component.quantization, draft.quantizations[size_t(c)].begin());
  }
  image.first_mcu_row = rows.first;
}

}  // namespace

int64_t JpegDeviceDraft::sample_bytes(int component) const {
  const DevicePlane& plane = image.plane[component];
  return aligned(int64_t{plane.stride} * plane.rows * 8);
}

int64_t JpegDeviceDraft::out_bytes() const {
  return aligned(int64_t{image.out_plane} * image.channels);
}

bool JpegDrafting::begin(std::span<const uint8_t> bytes, std::span<const uint8_t> row_index,
                         const Window& window, ColorMode color, JpegDeviceDraft& draft) {
  const JpegFrame& frame = header_.frame;
  if (!read_jpeg_header(bytes, header_)) return false;
  if (!is_inside(window, frame.width, frame.height)) return false;
  if (!index_.parse(row_index, JpegRowLayout::of(header_), bytes.size())) return false;
  draft.image = {};
  draft.row_jobs.clear();
  DeviceImage& image = draft.image;
  image.x = window.x;
  image.y = window.y;
  image.width = window.width;
  image.height = window.height;
  image.margin = window.x % 8;
  image.out_stride = (image.margin + window.width + 7) / 8 * 8;
  image.components = frame.count;
  image.channels = channels_wanted(frame.color, color);
  image.color = device_color(frame.color, color);
  if (int64_t{image.out_stride} * window.height > INT32_MAX / 4) return false;
  image.out_plane = image.out_stride * window.height;
  if (!find_codes(draft)) return false;
  rows_.bytes = bytes;
  rows_.blocks = image.blocks;
  find_planes(frame, draft, rows_);
  if (!are_known(rows_)) return false;
  walked_ = walked_rows(rows_);
  image.mcu_columns = rows_.right - walked_.first_column;
  image.first_block = -int64_t{walked_.first_column} * image.blocks;
  draft.blocks = walked_.blocks;
  return true;
}

bool make_device_draft(std::span<const uint8_t> bytes, std::span<const uint8_t> row_index,
                       const Window& window, ColorMode color, JpegDeviceDraft& draft,
                       std::vector<uint32_t>& streams) {
  thread_local JpegDrafting drafting;
  if (!drafting.begin(bytes, row_index, window, color, draft)) return false;
  const size_t before = streams.size();
  streams.resize(before + drafting.max_words());
  const size_t words = drafting.write(streams.data() + before, draft);
  streams.resize(before + words);
  return words > 0;
}

}  // namespace headrace
