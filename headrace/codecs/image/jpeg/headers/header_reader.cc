// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/headers/header_reader.h"

#include <cstring>

#include "headrace/codecs/image/jpeg/headers/frame.h"

namespace headrace {

using namespace jpeg_marker;

namespace {

bool is_factor(int sampling) { return sampling >= 1 && sampling <= 4; }

int blocks_in_mcu(const JpegFrame& frame) {
  int blocks = 0;
  for (int c = 0; c < frame.count; ++c) blocks += frame.component[c].h * frame.component[c].v;
  return blocks;
}

}  // namespace

bool next_jpeg_segment(std::span<const uint8_t> bytes, size_t& at, JpegSegment& segment) {
  while (true) {
    if (at > bytes.size() || bytes.size() - at < 4 || bytes[at] != 0xFF) return false;
    segment.marker = bytes[at + 1];
    if (segment.marker != 0xFF) break;
    ++at;  // a fill byte
  }
  const size_t length = size_t{big_u16(bytes, at + 2)};
  if (length < 2 || length > bytes.size() - at - 2) return false;
  segment.body = bytes.subspan(at + 4, length - 2);
  at += 2 + length;
  return true;
}

JpegHeaderReader::JpegHeaderReader(Kind kind, JpegHeader& header) : kind_(kind), header_(header) {
  header.frame.count = 0;
  header.restart_interval = 0;
  header.tables.forget();
}

bool JpegHeaderReader::take(const JpegSegment& segment) {
  const std::span<const uint8_t> body = segment.body;
  switch (segment.marker) {
    case kSof0:
    case kSof1:
      return kind_ == Kind::kSequential && frame(body);
    case kSof2:
      return kind_ == Kind::kProgressive && frame(body);
    case kDht:
      return header_.tables.take_huffman(body);
    case kDqt:
      return header_.tables.take_quantization(body);
    case kDri:
      if (body.size() != 2) return false;
      header_.restart_interval = int(big_u16(body, 0));
      return true;
    case kApp0:
      if (body.size() < 14 || std::memcmp(body.data(), "JFIF", 5) != 0) return true;
      jfif_ = true;
      return body[5] == 1;  // libjpeg warns about other major versions
    case kApp14:
      if (body.size() < 12 || std::memcmp(body.data(), "Adobe", 5) != 0) return true;
      adobe_ = body[11];
      return adobe_ <= 1;  // and about other transforms
    default:
      return (segment.marker > kApp0 && segment.marker <= kApp15) || segment.marker == kCom;
  }
}

void JpegHeaderReader::find_color() {
  JpegFrame& image = header_.frame;
  std::array<int, 4> ids{};
  for (int c = 0; c < image.count; ++c) ids[size_t(c)] = image.component[c].id;
  image.color = jpeg_color_of(image.count, ids, jfif_, adobe_);
}

bool JpegHeaderReader::frame(std::span<const uint8_t> body) {
  JpegFrame& image = header_.frame;
  if (image.count != 0 || body.size() < 6 || body[0] != 8) return false;
  image.height = int(big_u16(body, 1));
  image.width = int(big_u16(body, 3));
  const int count = body[5];
  if ((count != 1 && count != 3) || body.size() != size_t(6 + 3 * count)) return false;
  if (image.width > kLargestJpegSide || image.height > kLargestJpegSide) return false;
  for (int c = 0; c < count; ++c) {
    const std::span<const uint8_t> field = body.subspan(6 + 3 * c, 3);
    JpegComponent& component = image.component[c];
    component.id = field[0];
    component.h = field[1] >> 4;
    component.v = field[1] & 15;
    component.quantization_slot = field[2];
    if (field[2] > 3 || !is_factor(component.h) || !is_factor(component.v)) return false;
    for (int other = 0; other < c; ++other) {
      if (image.component[other].id == component.id) return false;
    }
  }
  image.count = count;
  header_.rows_at_once = count == 1 ? image.component[0].v : 1;
  return lay_out(image) && blocks_in_mcu(image) <= 10;
}

}  // namespace headrace
