// SPDX-License-Identifier: Apache-2.0
// The box esds: the type of an MPEG-4 stream, and its decoder's configuration (ISO/IEC 14496-1,
// 7.2.6).
#pragma once

#include <cstdint>
#include <span>

#include "headrace/codecs/media/big_endian_reader.h"

namespace headrace {

struct ElementaryStream {
  int object_type = -1;               // -1: the box is damaged
  std::span<const uint8_t> specific;  // configuration of the decoder
};

// The length of a descriptor (ISO/IEC 14496-1, 8.3.3): seven bits per byte, at most four bytes.
inline uint32_t descriptor_length(BigEndianReader& reader) {
  uint32_t length = 0;
  for (int i = 0; i < 4; ++i) {
    const uint8_t byte = reader.u8();
    length = length << 7 | (byte & 0x7F);
    if (!(byte & 0x80)) break;
  }
  return length;
}

inline ElementaryStream read_esds(std::span<const uint8_t> esds) {
  constexpr uint8_t kStream = 3, kDecoderConfig = 4, kSpecific = 5;
  ElementaryStream out;
  BigEndianReader reader(esds);
  reader.skip(4);  // version, flags
  if (reader.u8() != kStream) return out;
  descriptor_length(reader);
  reader.skip(2);
  const uint8_t flags = reader.u8();
  if (flags & 0x80) reader.skip(2);
  if (flags & 0x40) reader.skip(reader.u8());
  if (flags & 0x20) reader.skip(2);
  if (reader.u8() != kDecoderConfig) return out;
  descriptor_length(reader);
  const int object_type = reader.u8();
  reader.skip(12);
  if (!reader.good()) return out;
  out.object_type = object_type;
  if (reader.u8() == kSpecific) {
    const uint32_t length = descriptor_length(reader);
    out.specific = reader.bytes(length);
  }
  return out;
}

}  // namespace headrace
