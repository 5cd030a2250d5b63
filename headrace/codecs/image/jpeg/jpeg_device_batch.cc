// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/jpeg_device_batch.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "headrace/codecs/image/jpeg/jpeg_device_code.h"
#include "headrace/codecs/image/jpeg/jpeg_device_rows.h"
#include "headrace/codecs/image/jpeg/jpeg_header.h"
#include "headrace/codecs/image/jpeg/jpeg_plane.h"
#include "headrace/codecs/image/jpeg/jpeg_row_index.h"
#include "headrace/kernels/jpeg/zigzag.h"

namespace headrace {
namespace {

// Of a batch's last codes and quantizations, how many are compared with a picture's: files of one
// camera or encoder share theirs.
constexpr size_t kCompared = 16;

template <class T>
int32_t number_in(std::vector<T>& known, const T& wanted) {
  const size_t first = known.size() > kCompared ? known.size() - kCompared : 0;
  for (size_t i = known.size(); i-- > first;) {
    if (std::memcmp(&known[i], &wanted, sizeof(T)) == 0) return int32_t(i);
  }
  known.push_back(wanted);
  return int32_t(known.size() - 1);
}

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

ColorKind kind_of(const DevicePicture& picture) {
  const auto is = [&](int c, Upsampling upsampling) {
    return picture.plane[c].upsampling == upsampling;
  };
  if (picture.components < 3 || picture.color != DeviceColor::kRgbFromYcc ||
      !is(0, Upsampling::kNone)) {
    return ColorKind::kAny;
  }
  if (is(1, Upsampling::kNone) && is(2, Upsampling::kNone)) return ColorKind::kPlain;
  if (is(1, Upsampling::kH2V2) && is(2, Upsampling::kH2V2)) return ColorKind::kDoubled;
  return ColorKind::kAny;
}

void add_pieces(std::vector<PieceJob>& jobs, uint32_t picture, uint32_t component, int64_t items) {
  for (int64_t first = 0; first < items; first += kPiece) {
    jobs.push_back({picture, component, uint32_t(first)});
  }
}

template <class T>
void copy_section(const T* section, const std::vector<T>& made) {
  if (!made.empty()) std::memcpy(const_cast<T*>(section), made.data(), made.size() * sizeof(T));
}

}  // namespace

struct JpegDeviceBatch::Draft {
  JpegHeader header;
  JpegRowIndex index;
  DevicePicture picture{};
  DeviceCode code[4];
};

void JpegDeviceBatch::clear() {
  sizes_ = {};
  pictures_.clear();
  codes_.clear();
  quantizations_.clear();
  row_jobs_.clear();
  block_jobs_.clear();
  for (auto& jobs : pixel_jobs_) jobs.clear();
  streams_.clear();
}

// Two sets of codes, one a bit of the picture's pattern.
bool JpegDeviceBatch::find_codes(Draft& draft) {
  const JpegHeader& header = draft.header;
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
  const auto make = [&](int place, int c) {
    const HuffmanSpec& dc = header.tables.dc[header.dc_slot[c]];
    const HuffmanSpec& ac = header.tables.ac[header.ac_slot[c]];
    return make_device_code(dc, HuffmanUse::kDC, draft.code[place]) &&
           make_device_code(ac, HuffmanUse::kAC, draft.code[place + 2]);
  };
  return make(0, 0) && make(1, second);
}

void JpegDeviceBatch::find_planes(Draft& draft) {
  const JpegFrame& frame = draft.header.frame;
  DevicePicture& picture = draft.picture;
  const Window window{picture.x, picture.y, picture.width, picture.height};
  int first_mcu_row = frame.mcus_high, first_block = 0;
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
    picture.mcu_columns =
        std::max(picture.mcu_columns, ((to.first_column + to.columns - 1) >> to.h_shift) + 1);
  }
  picture.first_mcu_row = first_mcu_row;
}

bool JpegDeviceBatch::add(std::span<const uint8_t> bytes, std::span<const uint8_t> row_index,
                          const Window& window, ColorMode color) {
  Draft draft;
  const JpegFrame& frame = draft.header.frame;
  if (!read_jpeg_header(bytes, draft.header)) return false;
  if (!is_inside(window, frame.width, frame.height)) return false;
  if (!draft.index.parse(row_index, frame.mcus_wide, frame.mcus_high, draft.header.restart_interval,
                         bytes.size())) {
    return false;
  }
  DevicePicture& picture = draft.picture;
  picture.x = window.x;
  picture.y = window.y;
  picture.width = window.width;
  picture.height = window.height;
  picture.margin = window.x % 4;
  picture.out_stride = (picture.margin + window.width + 3) / 4 * 4;
  picture.out_plane = picture.out_stride * window.height;
  picture.components = frame.count;
  picture.channels = channels_wanted(frame.color, color);
  picture.color = device_color(frame.color, color);
  if (int64_t{picture.out_stride} * window.height > INT32_MAX / 4) return false;
  if (!find_codes(draft)) return false;
  find_planes(draft);

  int end_mcu_row = 0;
  for (int c = 0; c < frame.count; ++c) {
    const DevicePlane& plane = picture.plane[c];
    end_mcu_row = std::max(end_mcu_row, ((plane.first_row + plane.rows - 1) >> plane.v_shift) + 1);
  }
  picture.first_block = sizes_.blocks;
  const size_t jobs_before = row_jobs_.size();
  const JpegDeviceRows rows{.bytes = bytes,
                            .header = draft.header,
                            .index = draft.index,
                            .first = picture.first_mcu_row,
                            .end = end_mcu_row,
                            .columns = picture.mcu_columns,
                            .blocks = picture.blocks,
                            .picture = uint32_t(pictures_.size()),
                            .first_block = sizes_.blocks};
  const size_t words_before = streams_.size();
  const int64_t end_block = add_device_rows(rows, row_jobs_, streams_);
  if (end_block < 0) {
    row_jobs_.resize(jobs_before);
    streams_.resize(words_before);
    return false;
  }
  picture.first_job = int32_t(jobs_before);
  picture.jobs = int32_t(row_jobs_.size() - jobs_before);
  sizes_.blocks = end_block;
  take(draft);
  return true;
}

void JpegDeviceBatch::take(Draft& draft) {
  DevicePicture& picture = draft.picture;
  const uint32_t number = uint32_t(pictures_.size());
  for (int i = 0; i < 4; ++i) picture.code[i] = number_in(codes_, draft.code[i]);
  for (int c = 0; c < picture.components; ++c) {
    DevicePlane& plane = picture.plane[c];
    std::array<int16_t, 64> steps;  // values above 32767 wrap, as in libjpeg
    std::ranges::copy(draft.header.frame.component[c].quantization, steps.begin());
    plane.quantization = number_in(quantizations_, steps);
    plane.samples = sizes_.sample_bytes;
    sizes_.sample_bytes += aligned(int64_t{plane.stride} * plane.rows * 8);
    add_pieces(block_jobs_, number, uint32_t(c), int64_t{plane.columns} * plane.rows);
  }
  const int64_t fours = picture.out_stride / 4;
  add_pieces(pixel_jobs_[size_t(kind_of(picture))], number, 0, fours * picture.height);
  picture.out = sizes_.out_bytes;
  sizes_.out_bytes += aligned(int64_t{picture.out_plane} * picture.channels);
  pictures_.push_back(picture);

  sizes_.pictures = int64_t(pictures_.size());
  sizes_.row_jobs = int64_t(row_jobs_.size());
  sizes_.block_jobs = int64_t(block_jobs_.size());
  for (size_t i = 0; i < pixel_jobs_.size(); ++i) {
    sizes_.pixel_jobs[i] = int64_t(pixel_jobs_[i].size());
  }
  sizes_.codes = int64_t(codes_.size());
  sizes_.quantizations = int64_t(quantizations_.size());
  sizes_.stream_words = int64_t(streams_.size());
}

void JpegDeviceBatch::write(uint8_t* upload) const {
  const DeviceJpegMemory at = place(sizes_, upload, nullptr, nullptr);
  copy_section(at.pictures, pictures_);
  copy_section(at.codes, codes_);
  if (!quantizations_.empty()) {
    std::memcpy(const_cast<int16_t*>(at.quantizations), quantizations_.data(),
                quantizations_.size() * sizeof(quantizations_[0]));
  }
  uint8_t place_of[sizeof(WalkTables::place)] = {};
  for (size_t k = 0; k < kNaturalFromZigzag.size(); ++k) place_of[k + 1] = kNaturalFromZigzag[k];
  std::memcpy(const_cast<uint8_t*>(at.places), place_of, sizeof(place_of));
  copy_section(at.row_jobs, row_jobs_);
  copy_section(at.block_jobs, block_jobs_);
  for (size_t i = 0; i < pixel_jobs_.size(); ++i) copy_section(at.pixel_jobs[i], pixel_jobs_[i]);
  copy_section(at.streams, streams_);
}

}  // namespace headrace
