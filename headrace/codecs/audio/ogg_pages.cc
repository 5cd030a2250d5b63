// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/ogg_pages.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/image/byte_order.h"

namespace headrace {
namespace {

constexpr size_t kPageHeader = 27, kMaxPage = kPageHeader + 255 + 255 * 255;
constexpr uint8_t kFirstPage = 2;
constexpr uint32_t kPolynomial = 0x04c11db7;

// For four bytes at once: table k is for a byte followed by k more.
constexpr std::array<std::array<uint32_t, 256>, 4> kChecksums = [] {
  std::array<std::array<uint32_t, 256>, 4> out{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t sum = byte << 24;
    for (int bit = 0; bit < 8; ++bit) sum = sum << 1 ^ (sum >> 31 ? kPolynomial : 0);
    out[0][byte] = sum;
  }
  for (size_t k = 1; k < 4; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = out[k - 1][byte];
      out[k][byte] = before << 8 ^ out[0][before >> 24];
    }
  }
  return out;
}();

uint32_t add_to_checksum(uint32_t sum, std::span<const uint8_t> bytes) {
  size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    sum ^= big_u32(bytes, at);
    sum = kChecksums[3][sum >> 24] ^ kChecksums[2][sum >> 16 & 255] ^
          kChecksums[1][sum >> 8 & 255] ^ kChecksums[0][sum & 255];
  }
  for (; at < bytes.size(); ++at) sum = sum << 8 ^ kChecksums[0][sum >> 24 ^ bytes[at]];
  return sum;
}

void put_little(std::vector<uint8_t>& bytes, size_t at, uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes[at + size_t(i)] = static_cast<uint8_t>(value >> 8 * i);
}

}  // namespace

bool is_ogg_of(std::span<const uint8_t> bytes, std::string_view codec) {
  if (bytes.size() < kPageHeader || std::memcmp(bytes.data(), "OggS", 4) != 0) return false;
  const size_t packet = kPageHeader + bytes[kPageHeader - 1];  // after the segment table
  return packet + codec.size() <= bytes.size() &&
         std::memcmp(bytes.data() + packet, codec.data(), codec.size()) == 0;
}

size_t ogg_page_bytes(std::span<const uint8_t> bytes) {
  if (bytes.size() < kPageHeader || std::memcmp(bytes.data(), "OggS", 4) != 0) return 0;
  size_t size = kPageHeader + bytes[kPageHeader - 1];
  if (bytes.size() < size) return 0;
  for (size_t i = kPageHeader, table = size; i < table; ++i) size += bytes[i];
  return size <= bytes.size() ? size : 0;
}

uint32_t ogg_checksum(std::span<const uint8_t> page) {
  constexpr std::array<uint8_t, 4> kNone{};
  uint32_t sum = add_to_checksum(0, page.first(kOggChecksumAt));
  sum = add_to_checksum(sum, kNone);
  return add_to_checksum(sum, page.subspan(kOggChecksumAt + 4));
}

Result<void> check_ogg_pages(std::string_view kind, const ByteRanges& file) {
  uint32_t serial = 0;
  uint32_t number = 0;  // of the next page
  for (uint64_t at = 0; at < file.size(); ++number) {
    const Result<std::span<const uint8_t>> there = file.at(at, kMaxPage);
    if (!there) return there.error();
    const std::span<const uint8_t> rest = *there;
    const std::string where = " at byte " + std::to_string(at);
    const bool begins = std::memcmp(rest.data(), "OggS", std::min<size_t>(rest.size(), 4)) == 0;
    if (!begins) return corrupt_audio(kind, "it has no Ogg page" + where);
    const size_t size = ogg_page_bytes(rest);
    if (size == 0) return truncated_audio(kind, "ends within the page" + where);
    const std::span<const uint8_t> page = rest.first(size);
    if (little_u32(page, kOggChecksumAt) != ogg_checksum(page)) {
      return corrupt_audio(kind, "the checksum of the page" + where + " is wrong");
    }
    const bool first = page[5] & kFirstPage;
    if (number > 0 && first) {
      return unsupported_audio(kind, "contains several streams; the second starts" + where,
                               "decode it once and write one stream (ffmpeg, sox)");
    }
    if (number == 0) serial = little_u32(page, 14);
    if (little_u32(page, 14) != serial || (number == 0 && !first)) {
      return corrupt_audio(kind, "the page" + where + " belongs to no stream");
    }
    const uint32_t its_number = little_u32(page, 18);
    if (number == 0) number = its_number;
    if (its_number != number) {
      return truncated_audio(kind, "lacks pages before byte " + std::to_string(at));
    }
    at += size;
  }
  return {};
}

void OggWriter::add(std::span<const uint8_t> packet, int64_t position, bool last) {
  constexpr size_t kHead = 27, kSegment = 255, kMaxSegments = 255;
  constexpr uint8_t kContinuedPacket = 1, kFirst = 2, kLast = 4;
  size_t segments = packet.size() / kSegment + 1;  // only the last segment is shorter
  bool is_continued = false;
  while (segments > 0) {
    const size_t here = std::min(segments, kMaxSegments), at = bytes_.size();
    const bool ends = here == segments;
    const size_t size = ends ? packet.size() : here * kSegment;
    bytes_.resize(at + kHead + here, kSegment);
    std::copy_n("OggS", 4, bytes_.begin() + std::ptrdiff_t(at));
    bytes_[at + 4] = 0;
    bytes_[at + 5] = static_cast<uint8_t>((is_continued ? kContinuedPacket : 0) |
                                          (pages_ == 0 ? kFirst : 0) | (ends && last ? kLast : 0));
    put_little(bytes_, at + 6, ends ? static_cast<uint64_t>(position) : ~uint64_t{0}, 8);
    put_little(bytes_, at + 14, 1, 4);  // the stream's serial number
    put_little(bytes_, at + 18, pages_++, 4);
    put_little(bytes_, at + kOggChecksumAt, 0, 4);
    bytes_[at + 26] = static_cast<uint8_t>(here);
    if (ends) bytes_.back() = static_cast<uint8_t>(size % kSegment);
    bytes_.insert(bytes_.end(), packet.begin(), packet.begin() + std::ptrdiff_t(size));
    put_little(bytes_, at + kOggChecksumAt, ogg_checksum(std::span(bytes_).subspan(at)), 4);
    packet = packet.subspan(size);
    segments -= here;
    is_continued = true;
  }
}

}  // namespace headrace
