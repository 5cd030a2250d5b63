// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/mpeg4_pictures.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "headrace/codecs/media/big_endian_reader.h"

namespace headrace {
namespace {

// Codes after 00 00 01 (table 6-3).
constexpr uint8_t kFirstLayer = 0x20, kLastLayer = 0x2F, kUserData = 0xB2, kGroup = 0xB3,
                  kPicture = 0xB6;
constexpr size_t kCode = 4;

// Position of 00 00 01 followed by a byte, at or after `from`; the size if there is none.
size_t next_code(std::span<const uint8_t> bytes, size_t from) {
  for (size_t at = from + 2; at + 1 < bytes.size(); ++at) {
    const void* const found = std::memchr(bytes.data() + at, 1, bytes.size() - 1 - at);
    if (!found) break;
    at = static_cast<size_t>(static_cast<const uint8_t*>(found) - bytes.data());
    if (bytes[at - 1] == 0 && bytes[at - 2] == 0) return at - 2;
  }
  return bytes.size();
}

struct LayerTimes {
  int bits = 0;
  bool interlaced = false;
};

// VideoObjectLayer() up to the flag `interlaced` (6.2.3); no bits if invalid.
LayerTimes times_of(std::span<const uint8_t> layer) {
  constexpr uint32_t kExtendedRatio = 15, kRectangle = 0, kBinary = 2, kGrayscale = 3;
  BigEndianBits bits(layer);
  bits.skip(1 + 8);  // random_accessible_vol, video_object_type_indication
  uint32_t version = 1;
  if (bits.flag()) {  // is_object_layer_identifier
    version = bits.take(4);
    bits.skip(3);
  }
  if (bits.take(4) == kExtendedRatio) bits.skip(16);
  if (bits.flag()) {  // vol_control_parameters
    bits.skip(2 + 1);
    if (bits.flag()) bits.skip(79);  // vbv_parameters
  }
  const uint32_t shape = bits.take(2);
  if (shape == kGrayscale && version != 1) bits.skip(4);
  bits.skip(1);  // a marker
  const uint32_t resolution = bits.take(16);
  if (!bits.good() || resolution == 0) return {};
  LayerTimes out{.bits = std::max(1, static_cast<int>(std::bit_width(resolution - 1)))};
  bits.skip(1);                                               // a marker
  if (bits.flag()) bits.skip(static_cast<size_t>(out.bits));  // fixed_vop_time_increment
  if (shape == kRectangle) bits.skip(1 + 13 + 1 + 13 + 1);    // width and height between markers
  out.interlaced = shape != kBinary && bits.flag() && bits.good();
  return out;
}

bool begins_with(std::span<const uint8_t> text, std::string_view word) {
  return text.size() >= word.size() && std::memcmp(text.data(), word.data(), word.size()) == 0;
}

bool names_known_encoder(std::span<const uint8_t> text) {
  constexpr std::string_view kNames[] = {"DivX", "XviD", "Lavc", "FFmpeg", "ffmpeg"};
  return std::ranges::any_of(kNames, [text](auto name) { return begins_with(text, name); });
}

// "DivX503b1393p": a version, a build, and a letter.
bool says_packed_bitstream(std::span<const uint8_t> text) {
  if (!begins_with(text, "DivX")) return false;
  const auto skip_digits = [&text] {
    while (!text.empty() && text[0] >= '0' && text[0] <= '9') text = text.subspan(1);
  };
  text = text.subspan(4);
  skip_digits();
  for (const std::string_view word : {"b", "Build"}) {
    if (!begins_with(text, word)) continue;
    text = text.subspan(word.size());
    skip_digits();
    return begins_with(text, "p");
  }
  return false;
}

}  // namespace

std::optional<Mpeg4Picture> next_mpeg4_picture(std::span<const uint8_t> bytes, size_t from) {
  for (size_t at = next_code(bytes, from); at + kCode < bytes.size();
       at = next_code(bytes, at + kCode)) {
    if (bytes[at + 3] != kPicture) continue;
    const std::span<const uint8_t> header = bytes.subspan(at + kCode);
    return Mpeg4Picture{at, static_cast<Mpeg4Kind>(header[0] >> 6), header};
  }
  return {};
}

std::span<const uint8_t> mpeg4_parameters(std::span<const uint8_t> first_packet) {
  size_t at = next_code(first_packet, 0);
  while (at < first_packet.size() && first_packet[at + 3] != kPicture &&
         first_packet[at + 3] != kGroup) {
    at = next_code(first_packet, at + kCode);
  }
  return first_packet.first(at);
}

void Mpeg4Layer::learn(std::span<const uint8_t> bytes) {
  for (size_t at = next_code(bytes, 0); at + kCode < bytes.size();) {
    const uint8_t code = bytes[at + 3];
    if (code == kPicture) return;
    const size_t next = next_code(bytes, at + kCode);
    const std::span<const uint8_t> content = bytes.subspan(at + kCode, next - at - kCode);
    if (code >= kFirstLayer && code <= kLastLayer) {
      if (const LayerTimes found = times_of(content); found.bits > 0) {
        time_bits = found.bits;
        interlaced = found.interlaced;
      }
    } else if (code == kUserData) {
      packs_pictures = packs_pictures || says_packed_bitstream(content);
      names_encoder = names_encoder || names_known_encoder(content);
    }
    at = next;
  }
}

bool Mpeg4Layer::is_empty(const Mpeg4Picture& picture) const {
  if (time_bits == 0) return false;
  BigEndianBits bits(picture.header);
  bits.skip(2);
  while (bits.flag()) {  // modulo_time_base, terminated by a 0 bit; the reader returns 0s past the
                         // end
  }
  bits.skip(1 + static_cast<size_t>(time_bits) + 1);  // between markers
  const bool coded = bits.flag();
  return bits.good() && !coded;
}

}  // namespace headrace
