// SPDX-License-Identifier: Apache-2.0
// Little-endian and big-endian numbers. Callers check bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace headrace {

inline uint32_t little_u16(std::span<const uint8_t> bytes, size_t at) {
  return bytes[at] | uint32_t{bytes[at + 1]} << 8;
}
inline uint32_t little_u24(std::span<const uint8_t> bytes, size_t at) {
  return little_u16(bytes, at) | uint32_t{bytes[at + 2]} << 16;
}
inline uint32_t little_u32(std::span<const uint8_t> bytes, size_t at) {
  return little_u16(bytes, at) | little_u16(bytes, at + 2) << 16;
}

inline uint32_t big_u16(std::span<const uint8_t> bytes, size_t at) {
  return uint32_t{bytes[at]} << 8 | bytes[at + 1];
}
inline uint32_t big_u32(std::span<const uint8_t> bytes, size_t at) {
  return big_u16(bytes, at) << 16 | big_u16(bytes, at + 2);
}

}  // namespace headrace
