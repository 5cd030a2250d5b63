// SPDX-License-Identifier: Apache-2.0
// NAL units of H.264 and HEVC for tests: only their headers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/base/bytes_test_join.h"

namespace headrace::nal_test {

using bytes_test::Bytes;
using bytes_test::operator+;

inline const Bytes kIdr{0x65, 0x88}, kReference{0x41, 0x9A}, kOther{0x01, 0x9E},
    kParameterSet{0x67, 100};

inline Bytes packet_of(const std::vector<Bytes>& units, int length_bytes = 4) {
  Bytes out;
  for (const Bytes& unit : units) {
    for (int i = length_bytes; i-- > 0;) out.push_back(static_cast<uint8_t>(unit.size() >> 8 * i));
    out = out + unit;
  }
  return out;
}

// A supplemental information (SEI) message, in a unit of its own.
inline Bytes sei(uint8_t type, const Bytes& content) {
  Bytes out{0x06, type};
  size_t size = content.size();
  for (; size >= 255; size -= 255) out.push_back(255);
  out.push_back(static_cast<uint8_t>(size));
  int zeros = 0;
  for (const uint8_t byte : content) {
    if (zeros == 2 && byte <= 3) {
      out.push_back(3);
      zeros = 0;
    }
    zeros = byte == 0 ? zeros + 1 : 0;
    out.push_back(byte);
  }
  out.push_back(0x80);
  return out;
}

// After the 16 bytes of the UUID.
inline Bytes x264_sei(std::string_view text) {
  return sei(5, Bytes(16, 0) + Bytes(text.begin(), text.end()));
}

inline Bytes avcc_of(int length_bytes = 4) {
  return {1, 100, 0, 30, static_cast<uint8_t>(0xFC | (length_bytes - 1)), 0xE0, 0};
}

// With one sequence parameter set, which states the maximum number of temporal sub-layers.
inline Bytes hvcc_of(int sub_layers) {
  Bytes out(21, 0);
  out[0] = 1;
  const Bytes sps{0x42, 1, static_cast<uint8_t>((sub_layers - 1) << 1)};
  return out + Bytes{static_cast<uint8_t>(sub_layers << 3 | 3), 1, 33, 0, 1, 0, 3} + sps;
}

inline Bytes hevc_unit(int type, int layer = 0) {
  return {static_cast<uint8_t>(type << 1), static_cast<uint8_t>(layer + 1), 0x80};
}

}  // namespace headrace::nal_test
