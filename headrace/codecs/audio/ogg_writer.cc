// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/ogg_writer.h"

#include <algorithm>

#include "headrace/codecs/audio/ogg_pages.h"

namespace headrace {
namespace {

void put_little(std::vector<uint8_t>& bytes, size_t at, uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes[at + size_t(i)] = static_cast<uint8_t>(value >> 8 * i);
}

}  // namespace

void OggWriter::add(std::span<const uint8_t> packet, int64_t position, bool last) {
  constexpr size_t kHead = 27, kSegment = 255, kMostSegments = 255;
  constexpr uint8_t kGoesOn = 1, kFirst = 2, kLast = 4;
  size_t segments = packet.size() / kSegment + 1;  // only the last segment is shorter
  bool goes_on = false;
  while (segments > 0) {
    const size_t here = std::min(segments, kMostSegments), at = bytes_.size();
    const bool ends = here == segments;
    const size_t size = ends ? packet.size() : here * kSegment;
    bytes_.resize(at + kHead + here, kSegment);
    std::copy_n("OggS", 4, bytes_.begin() + std::ptrdiff_t(at));
    bytes_[at + 4] = 0;
    bytes_[at + 5] = static_cast<uint8_t>((goes_on ? kGoesOn : 0) | (pages_ == 0 ? kFirst : 0) |
                                          (ends && last ? kLast : 0));
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
    goes_on = true;
  }
}

}  // namespace headrace
