// SPDX-License-Identifier: Apache-2.0
// Writes small AVI files for tests, and the headers of MPEG-4 pictures.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/base/bytes_test_join.h"

namespace headrace::avi_test {

using bytes_test::Bytes;
using bytes_test::operator+;

inline Bytes text(std::string_view letters) { return {letters.begin(), letters.end()}; }
inline Bytes numbers(const std::vector<uint32_t>& values) {
  Bytes out;
  for (const uint32_t value : values) {
    for (int i = 0; i < 4; ++i) out.push_back(static_cast<uint8_t>(value >> 8 * i));
  }
  return out;
}
inline Bytes chunk(std::string_view name, Bytes content) {
  const auto size = static_cast<uint32_t>(content.size());
  if (size % 2) content.push_back(0);
  return text(name) + numbers({size}) + content;
}
inline Bytes list(std::string_view name, const Bytes& content, std::string_view of = "LIST") {
  return chunk(of, text(name) + content);
}

// A layer whose clock has 25 ticks per second, so that times take five bits.
inline const Bytes kLayer{0, 0, 1, 0x20, 0x00, 0x84, 0x40, 0x06, 0x60};
// The same, with frames of 64 x 48, and a flag for interlacing.
inline const Bytes kFields{0, 0, 1, 0x20, 0x00, 0x84, 0x40, 0x06, 0x68, 0x10, 0x20, 0x30, 0xFF};
inline const Bytes kFieldsAtFixedRate{0,    0,    1,    0x20, 0x00, 0x84, 0x40,
                                      0x06, 0x70, 0xC0, 0x81, 0x01, 0x87};
inline const Bytes kNoFields{0, 0, 1, 0x20, 0x00, 0x84, 0x40, 0x06, 0x70, 0xC0, 0x81, 0x01, 0x85};
// I, P, B or S.
inline Bytes picture(char kind, bool coded = true, size_t size = 9) {
  const auto number = static_cast<uint8_t>(std::string_view("IPBS").find(kind));
  Bytes out{0,
            0,
            1,
            0xB6,
            static_cast<uint8_t>(number << 6 | 0b010000),
            static_cast<uint8_t>(0b01000000 | (coded ? 0b00100000 : 0))};
  out.resize(size, 0x55);
  return out;
}
inline Bytes user_data(std::string_view said) { return Bytes{0, 0, 1, 0xB2} + text(said); }

struct Avi {
  std::vector<Bytes> packets;
  std::string_view coding = "FMP4";
  uint32_t width = 64, height = 48, rate = 25, scale = 1, start = 0;
  Bytes parameters;      // after the format
  Bytes streams_before;  // strl lists
  std::string_view name = "00dc";

  Bytes stream() const {
    Bytes strh = text("vids") + text(coding) + numbers({0, 0, 0, scale, rate, start});
    strh.resize(56, 0);
    const Bytes strf =
        numbers({40 + static_cast<uint32_t>(parameters.size()), width, height, 1 | 24 << 16}) +
        text(coding) + Bytes(20, 0) + parameters;
    return list("strl", chunk("strh", strh) + chunk("strf", strf));
  }
  Bytes headers() const {
    return list("hdrl", chunk("avih", Bytes(56, 0)) + streams_before + stream());
  }
  Bytes movi() const {
    Bytes all;
    for (const Bytes& packet : packets) all = all + chunk(name, packet);
    return all;
  }
  Bytes file() const { return list("AVI ", headers() + list("movi", movi()), "RIFF"); }
};

}  // namespace headrace::avi_test
