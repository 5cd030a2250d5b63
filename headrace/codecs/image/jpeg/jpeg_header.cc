// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/jpeg_header.h"

#include <cstring>

#include "headrace/codecs/image/jpeg/jpeg_color_space.h"

namespace headrace {
namespace {

using namespace jpeg_marker;
using Bytes = std::span<const uint8_t>;

class Reader {
 public:
  explicit Reader(JpegHeader& header) : header_(header) {}

  // One segment without its length; false when it is not what our decoder takes.
  bool segment(int marker, Bytes body) {
    switch (marker) {
      case kSof0:
      case kSof1:
        return frame(body);
      case kDht:
        return header_.tables.take_huffman(body);
      case kDqt:
        return header_.tables.take_quantization(body);
      case kDri:
        if (body.size() != 2) return false;
        header_.restart_interval = big_endian_16(body, 0);
        return true;
      case kApp0:
        if (body.size() < 14 || std::memcmp(body.data(), "JFIF", 5) != 0) return true;
        jfif_ = true;
        return body[5] == 1;  // libjpeg warns of other major versions
      case kApp14:
        if (body.size() < 12 || std::memcmp(body.data(), "Adobe", 5) != 0) return true;
        adobe_ = body[11];
        return adobe_ <= 1;  // and of other transforms
      default:
        return (marker > kApp0 && marker <= kApp15) || marker == kCom;
    }
  }

  bool scan(Bytes body) {
    JpegFrame& picture = header_.frame;
    const JpegTables& tables = header_.tables;
    const size_t count = size_t(picture.count);
    if (count == 0 || body.size() != 4 + 2 * count || body[0] != count) return false;
    for (size_t c = 0; c < count; ++c) {
      JpegComponent& component = picture.component[c];
      const int dc = body[2 + 2 * c] >> 4, ac = body[2 + 2 * c] & 15;
      if (body[1 + 2 * c] != component.id || dc > 3 || ac > 3) return false;
      if (!(tables.dc_seen >> dc & 1) || !(tables.ac_seen >> ac & 1)) return false;
      if (!(tables.quantization_seen >> component.quantization_slot & 1)) return false;
      header_.dc_slot[c] = uint8_t(dc);
      header_.ac_slot[c] = uint8_t(ac);
      component.quantization = tables.quantization[component.quantization_slot];
    }
    // Ss = 0, Se = 63, Ah = Al = 0.
    if (body[1 + 2 * count] != 0 || body[2 + 2 * count] != 63 || body[3 + 2 * count] != 0) {
      return false;
    }
    std::array<int, 4> ids{};
    for (size_t c = 0; c < count; ++c) ids[c] = picture.component[c].id;
    picture.color = jpeg_color_of(picture.count, ids, jfif_, adobe_);
    return true;
  }

 private:
  bool frame(Bytes body) {
    JpegFrame& picture = header_.frame;
    if (picture.count != 0 || body.size() < 6 || body[0] != 8) return false;
    picture.height = big_endian_16(body, 1);
    picture.width = big_endian_16(body, 3);
    const int count = body[5];
    if ((count != 1 && count != 3) || body.size() != size_t(6 + 3 * count)) return false;
    if (picture.width > kLargestJpegSide || picture.height > kLargestJpegSide) return false;
    for (int c = 0; c < count; ++c) {
      const Bytes field = body.subspan(6 + 3 * c, 3);
      JpegComponent& component = picture.component[c];
      component.id = field[0];
      component.h = field[1] >> 4;
      component.v = field[1] & 15;
      component.quantization_slot = field[2];
      if (field[2] > 3 || !is_factor(component.h) || !is_factor(component.v)) return false;
      for (int other = 0; other < c; ++other) {
        if (picture.component[other].id == component.id) return false;
      }
    }
    picture.count = count;
    header_.rows_at_once = count == 1 ? picture.component[0].v : 1;
    return lay_out(picture) && blocks_in_mcu() <= 10;
  }

  static bool is_factor(int sampling) { return sampling >= 1 && sampling <= 4; }

  int blocks_in_mcu() const {
    int blocks = 0;
    for (int c = 0; c < header_.frame.count; ++c) {
      blocks += header_.frame.component[c].h * header_.frame.component[c].v;
    }
    return blocks;
  }

  JpegHeader& header_;
  bool jfif_ = false;
  int adobe_ = -1;  // the transform that an Adobe marker names
};

}  // namespace

bool read_jpeg_header(Bytes bytes, JpegHeader& header) {
  header.frame.count = 0;
  header.restart_interval = 0;
  header.tables.forget();
  if (bytes.size() < 4 || bytes[0] != 0xFF || bytes[1] != kSoi) return false;
  Reader reader(header);
  size_t at = 2;
  while (true) {
    if (bytes.size() - at < 4 || bytes[at] != 0xFF) return false;
    const int marker = bytes[at + 1];
    if (marker == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    const size_t length = size_t(big_endian_16(bytes, at + 2));
    if (length < 2 || length > bytes.size() - at - 2) return false;
    const Bytes body = bytes.subspan(at + 4, length - 2);
    at += 2 + length;
    if (marker == kSos) {
      header.scan = at;
      return reader.scan(body);
    }
    if (!reader.segment(marker, body)) return false;
  }
}

}  // namespace headrace
