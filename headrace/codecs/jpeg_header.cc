// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/jpeg_header.h"

#include <algorithm>
#include <cstring>

#include "headrace/codecs/jpeg_color_space.h"

namespace headrace {
namespace {

constexpr int kSof0 = 0xC0, kSof1 = 0xC1, kDht = 0xC4, kSos = 0xDA, kDqt = 0xDB, kDri = 0xDD;
constexpr int kApp0 = 0xE0, kApp14 = 0xEE, kApp15 = 0xEF, kCom = 0xFE;
constexpr int kLargestSide = 65500;  // libjpeg's JPEG_MAX_DIMENSION

using Bytes = std::span<const uint8_t>;

int u16(Bytes bytes, size_t at) { return bytes[at] << 8 | bytes[at + 1]; }

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
        return huffman_tables(body);
      case kDqt:
        return quantization_tables(body);
      case kDri:
        if (body.size() != 2) return false;
        header_.restart_interval = u16(body, 0);
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
    const size_t count = size_t(picture.count);
    if (count == 0 || body.size() != 4 + 2 * count || body[0] != count) return false;
    for (size_t c = 0; c < count; ++c) {
      JpegComponent& component = picture.component[c];
      const int dc = body[2 + 2 * c] >> 4, ac = body[2 + 2 * c] & 15;
      if (body[1 + 2 * c] != component.id || dc > 3 || ac > 3) return false;
      if (!(dc_seen_ >> dc & 1) || !(ac_seen_ >> ac & 1)) return false;
      if (!(quantization_seen_ >> component.quantization_slot & 1)) return false;
      header_.dc_slot[c] = uint8_t(dc);
      header_.ac_slot[c] = uint8_t(ac);
      component.quantization = quantization_[component.quantization_slot];
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
    picture.height = u16(body, 1);
    picture.width = u16(body, 3);
    const int count = body[5];
    if ((count != 1 && count != 3) || body.size() != size_t(6 + 3 * count)) return false;
    if (picture.width > kLargestSide || picture.height > kLargestSide) return false;
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

  bool huffman_tables(Bytes body) {
    while (!body.empty()) {
      if (body.size() < 17) return false;
      const int kind = body[0] >> 4, slot = body[0] & 15;
      if (kind > 1 || slot > 3) return false;
      HuffmanSpec& spec = (kind ? header_.ac : header_.dc)[slot];
      std::copy_n(&body[1], 16, spec.counts.begin());
      size_t symbols = 0;
      for (uint8_t count : spec.counts) symbols += count;
      if (symbols > 256 || symbols > body.size() - 17) return false;
      spec.symbols.fill(0);
      std::copy_n(body.data() + 17, symbols, spec.symbols.begin());
      (kind ? ac_seen_ : dc_seen_) |= 1 << slot;
      body = body.subspan(17 + symbols);
    }
    return true;
  }

  bool quantization_tables(Bytes body) {
    while (!body.empty()) {
      const int wide = body[0] >> 4, slot = body[0] & 15;
      const size_t bytes = wide ? 128 : 64;
      if (wide > 1 || slot > 3 || body.size() < 1 + bytes) return false;
      for (int k = 0; k < 64; ++k) {
        const int value = wide ? u16(body, 1 + 2 * k) : body[1 + k];
        quantization_[slot][kNaturalFromZigzag[k]] = uint16_t(value);
      }
      quantization_seen_ |= 1 << slot;
      body = body.subspan(1 + bytes);
    }
    return true;
  }

  JpegHeader& header_;
  std::array<std::array<uint16_t, 64>, 4> quantization_;
  int quantization_seen_ = 0, dc_seen_ = 0, ac_seen_ = 0;  // one bit a slot
  bool jfif_ = false;
  int adobe_ = -1;  // the transform that an Adobe marker names
};

}  // namespace

bool read_jpeg_header(Bytes bytes, JpegHeader& header) {
  header.frame.count = 0;
  header.restart_interval = 0;
  if (bytes.size() < 4 || bytes[0] != 0xFF || bytes[1] != 0xD8) return false;
  Reader reader(header);
  size_t at = 2;
  while (true) {
    if (bytes.size() - at < 4 || bytes[at] != 0xFF) return false;
    const int marker = bytes[at + 1];
    if (marker == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    const size_t length = size_t(u16(bytes, at + 2));
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
