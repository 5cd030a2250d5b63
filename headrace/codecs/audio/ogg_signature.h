// SPDX-License-Identifier: Apache-2.0
// What stands in the first page of an Ogg file (RFC 3533): the codec's own signature.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace headrace {

inline bool is_ogg_of(std::span<const uint8_t> bytes, std::string_view codec) {
  constexpr size_t kPageHeader = 27;
  if (bytes.size() < kPageHeader || std::memcmp(bytes.data(), "OggS", 4) != 0) return false;
  const size_t packet = kPageHeader + bytes[kPageHeader - 1];  // behind the table of segments
  return packet + codec.size() <= bytes.size() &&
         std::memcmp(bytes.data() + packet, codec.data(), codec.size()) == 0;
}

}  // namespace headrace
