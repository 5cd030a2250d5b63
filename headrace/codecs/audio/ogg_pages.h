// SPDX-License-Identifier: Apache-2.0
// The pages of an Ogg file (RFC 3533), read and written. Pages are validated before a library sees
// them, because libraries differ in their treatment of damaged or chained files, and leak memory on
// such files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

// Whether the first page's first packet begins with these bytes.
bool is_ogg_of(std::span<const uint8_t> bytes, std::string_view codec);

// HR0350, HR0351 or HR0352 unless the file consists of complete pages of one stream, in order, with
// valid checksums. `kind`: for messages, "Vorbis".
Result<void> check_ogg_pages(std::string_view kind, const ByteRanges& file);

// Size of the page that begins here; 0 if there is none, or it is truncated.
size_t ogg_page_bytes(std::span<const uint8_t> bytes);
uint32_t ogg_checksum(std::span<const uint8_t> page);  // computed with the checksum field set to 0

inline constexpr size_t kOggChecksumAt = 22;

// Writes packets as an Ogg stream, so that an Ogg reader can read another container's data. Each
// packet begins a page.
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
