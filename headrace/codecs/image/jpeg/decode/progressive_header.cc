// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "headrace/codecs/image/jpeg/decode/progressive.h"
#include "headrace/codecs/image/jpeg/decode/session.h"
#include "headrace/codecs/image/jpeg/headers/header_reader.h"

namespace headrace {
namespace {

using namespace jpeg_marker;

// The lowest known bit of each coefficient; kNone before its first scan.
class KnownBits {
 public:
  KnownBits() {
    for (auto& component : low_) component.fill(kNone);
  }

  // Accepts what libjpeg accepts without a warning.
  bool allows(const JpegProgressiveScan& scan, int high) const {
    for (int c = 0; c < scan.count; ++c) {
      const auto& low = low_[scan.component[c]];
      if (!scan.form.is_dc() && low[0] == kNone) return false;
      for (int k = scan.form.first; k <= scan.form.last; ++k) {
        if (scan.form.refines ? low[k] != high : low[k] != kNone) return false;
      }
    }
    return true;
  }
  void take(const JpegProgressiveScan& scan) {
    for (int c = 0; c < scan.count; ++c) {
      auto& low = low_[scan.component[c]];
      std::fill(low.begin() + scan.form.first, low.begin() + scan.form.last + 1, scan.form.shift);
    }
  }
  bool complete(int components) const {
    return std::all_of(low_.begin(), low_.begin() + components, [](const auto& low) {
      return std::all_of(low.begin(), low.end(), [](int bit) { return bit == 0; });
    });
  }
  bool begun(int component) const { return low_[component][0] != kNone; }

 private:
  static constexpr int kNone = -1;
  std::array<std::array<int, 64>, 4> low_;
};

class ScanHeaderReader {
 public:
  explicit ScanHeaderReader(JpegProgressiveHeader& out) : out_(out), header_(out.header) {}

  // Reads a scan's header.
  bool take(std::span<const uint8_t> body) {
    const JpegFrame& frame = header_.frame;
    if (frame.count == 0 || body.empty() || out_.scans.size() == JpegProgressiveHeader::kMax)
      return false;
    const int count = body[0];
    if (count < 1 || count > frame.count || body.size() != size_t(4 + 2 * count)) return false;
    JpegProgressiveScan scan;
    scan.count = count;
    const std::span<const uint8_t> form = body.subspan(size_t(1 + 2 * count), 3);
    const int high = form[2] >> 4, low = form[2] & 15;
    scan.form = {.first = form[0], .last = form[1], .shift = low, .refines = high > 0};
    if (scan.form.is_dc() ? scan.form.last != 0 : count != 1) return false;
    if (scan.form.last < scan.form.first || scan.form.last > 63) return false;
    if (low > 13 || (high > 0 && high != low + 1)) return false;
    for (int c = 0, of = 0; c < count; ++c, ++of) {
      while (of < frame.count && frame.component[of].id != body[size_t(1 + 2 * c)]) ++of;
      if (of == frame.count) return false;  // not a component of the frame, or out of order
      scan.component[size_t(c)] = uint8_t(of);
      if (!take_tables(body[size_t(2 + 2 * c)], of, scan, c)) return false;
    }
    if (!known_.allows(scan, high)) return false;
    known_.take(scan);
    scan.restart_interval = header_.restart_interval;
    out_.scans.push_back(scan);
    return true;
  }

  // Note [What scans may cost], with libjpeg's own limits: libjpeg rejects such files.
  bool affordable(size_t bytes) const {
    int64_t all = 0, walked = 0;
    for (int c = 0; c < header_.frame.count; ++c) all += blocks_of(c);
    for (const JpegProgressiveScan& scan : out_.scans) {
      for (int c = 0; c < scan.count; ++c) walked += blocks_of(scan.component[size_t(c)]);
    }
    return walked <= JpegSession::kFreeWalks * all + JpegSession::kBlocksPerByte * int64_t(bytes);
  }

  bool complete() const { return known_.complete(header_.frame.count); }

 private:
  int64_t blocks_of(int c) const {
    const JpegComponent& component = header_.frame.component[c];
    return int64_t{component.blocks_wide} * component.blocks_high;
  }

  bool take_tables(uint8_t slots, int of, JpegProgressiveScan& scan, int c) {
    const JpegTables& tables = header_.tables;
    const int dc = slots >> 4, ac = slots & 15;
    if (dc > 3 || ac > 3) return false;
    JpegComponent& component = header_.frame.component[of];
    if (!known_.begun(of)) {  // quantization steps are fixed at the component's first scan
      if (!(tables.quantization_seen >> component.quantization_slot & 1)) return false;
      component.quantization = tables.quantization[component.quantization_slot];
    }
    if (!scan.uses_tables()) return true;
    const bool is_dc = scan.form.is_dc();
    if (!((is_dc ? tables.dc_seen >> dc : tables.ac_seen >> ac) & 1)) return false;
    scan.tables[size_t(c)] = is_dc ? tables.dc[dc] : tables.ac[ac];
    return true;
  }

  JpegProgressiveHeader& out_;
  JpegHeader& header_;
  KnownBits known_;
};

// Where the scan's data ends: at the first marker other than its restarts.
size_t end_of_scan(std::span<const uint8_t> bytes, size_t at, bool restarts) {
  while (at < bytes.size()) {
    const void* const found = std::memchr(bytes.data() + at, 0xFF, bytes.size() - at);
    if (!found) return bytes.size();
    at = size_t(static_cast<const uint8_t*>(found) - bytes.data());
    if (bytes.size() - at < 2) return at;
    const int marker = bytes[at + 1];
    const bool passes = marker == 0 || (restarts && marker >= kRst0 && marker <= kRst7);
    if (!passes) return at;
    at += 2;
  }
  return at;
}

}  // namespace

bool read_progressive_header(std::span<const uint8_t> bytes, JpegProgressiveHeader& out) {
  out.scans.clear();
  JpegHeaderReader segments(JpegHeaderReader::Kind::kProgressive, out.header);
  ScanHeaderReader scans(out);
  if (bytes.size() < 4 || bytes[0] != 0xFF || bytes[1] != kSoi) return false;
  size_t at = 2;
  JpegSegment segment;
  while (true) {
    const bool ends = bytes.size() - at >= 2 && bytes[at] == 0xFF && bytes[at + 1] == kEoi;
    if (ends) return scans.complete() && scans.affordable(bytes.size());
    if (!next_jpeg_segment(bytes, at, segment)) return false;
    if (segment.marker != kSos) {
      const bool table = segment.marker == kDht || segment.marker == kDri;
      // All other segments must come before the first scan.
      if (!out.scans.empty() && !table && segment.marker != kDqt && segment.marker != kCom) {
        return false;
      }
      if (!segments.take(segment)) return false;
      continue;
    }
    if (out.scans.empty()) segments.find_color();
    if (!scans.take(segment.body)) return false;
    JpegProgressiveScan& scan = out.scans.back();
    scan.first = at;
    at = scan.end = end_of_scan(bytes, at, scan.restart_interval > 0);
  }
}

}  // namespace headrace
