// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/hdf5/hdf5_checksum.h"

#include <algorithm>
#include <array>
#include <bit>

namespace headrace {
namespace {

uint32_t word_of(std::span<const uint8_t> bytes, size_t at) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4 && at + i < bytes.size(); ++i)
    word |= uint32_t{bytes[at + i]} << (8 * i);
  return word;
}

void mix(uint32_t& a, uint32_t& b, uint32_t& c) {
  a -= c, a ^= std::rotl(c, 4), c += b;
  b -= a, b ^= std::rotl(a, 6), a += c;
  c -= b, c ^= std::rotl(b, 8), b += a;
  a -= c, a ^= std::rotl(c, 16), c += b;
  b -= a, b ^= std::rotl(a, 19), a += c;
  c -= b, c ^= std::rotl(b, 4), b += a;
}

}  // namespace

uint32_t hdf5_metadata_checksum(std::span<const uint8_t> bytes) {
  uint32_t a = 0xDEADBEEF + static_cast<uint32_t>(bytes.size());
  uint32_t b = a, c = a;
  for (; bytes.size() > 12; bytes = bytes.subspan(12)) {
    a += word_of(bytes, 0), b += word_of(bytes, 4), c += word_of(bytes, 8);
    mix(a, b, c);
  }
  if (bytes.empty()) return c;
  a += word_of(bytes, 0), b += word_of(bytes, 4), c += word_of(bytes, 8);
  c ^= b, c -= std::rotl(b, 14);
  a ^= c, a -= std::rotl(c, 11);
  b ^= a, b -= std::rotl(a, 25);
  c ^= b, c -= std::rotl(b, 16);
  a ^= c, a -= std::rotl(c, 4);
  b ^= a, b -= std::rotl(a, 14);
  c ^= b, c -= std::rotl(b, 24);
  return c;
}

uint32_t hdf5_fletcher32(std::span<const uint8_t> bytes) {
  constexpr size_t kWords = 360;  // as many as can be added in 32 bits without overflow
  uint32_t low = 0, high = 0;
  const auto fold = [](uint32_t sum) { return (sum & 0xFFFF) + (sum >> 16); };
  size_t at = 0;
  for (size_t words = bytes.size() / 2; words > 0;) {
    const size_t count = std::min(words, kWords);
    for (size_t i = 0; i < count; ++i, at += 2) {
      low += uint32_t{bytes[at]} << 8 | bytes[at + 1];
      high += low;
    }
    low = fold(low), high = fold(high);
    words -= count;
  }
  if (bytes.size() % 2 != 0) {
    low += uint32_t{bytes[at]} << 8;
    high += low;
    low = fold(low), high = fold(high);
  }
  low = fold(low), high = fold(high);
  return high << 16 | low;
}

}  // namespace headrace
