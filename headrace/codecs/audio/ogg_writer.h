// SPDX-License-Identifier: Apache-2.0
// Writes packets as an Ogg stream (RFC 3533), so that an Ogg reader can read another container's
// data. Each packet begins a page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace {

class OggWriter {
 public:
  // `position`: number of the last sample that the packet completes. `last`: nothing follows.
  void add(std::span<const uint8_t> packet, int64_t position, bool last = false);
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
  uint32_t pages_ = 0;
};

}  // namespace headrace
