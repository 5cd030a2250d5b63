// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/parts/segments.h"

#include <algorithm>
#include <cstring>

#include "headrace/codecs/image/jpeg/headers/frame.h"

namespace headrace {
namespace {

using namespace jpeg_marker;
using Bytes = std::span<const uint8_t>;

constexpr int kMaxBlocks = 10;  // in an MCU of several components (B.2.3)
constexpr int kMaxScans = 500;  // same as JpegSession::kMaxScans

// Frames that are not Huffman-coded DCT with 8 bits.
std::string_view other_frame(int marker) {
  switch (marker) {
    case 0xC3:
      return "lossless";
    case 0xC9:
    case 0xCA:
    case 0xCB:
      return "arithmetic coding";
    case 0xC5:
    case 0xC6:
    case 0xC7:
    case 0xCD:
    case 0xCE:
    case 0xCF:
      return "hierarchical";
  }
  return {};
}

}  // namespace

JpegSegments::Reason JpegSegments::take(int marker, Bytes body) {
  if (const Reason kind = other_frame(marker); !kind.empty()) return kind;
  switch (marker) {
    case kSof0:
    case kSof1:
    case kSof2:
      return frame_header(marker, body);
    case kDht:
      return tables_.take_huffman(body) ? Reason() : "damaged tables";
    case kDac:
      return "arithmetic coding";
    case kSos:
      return scan_header(body);
    case kDqt:
      return tables_.take_quantization(body) ? Reason() : "damaged tables";
    case kDri:
      if (body.size() != 2) return "damaged header";
      restart_interval_ = int(big_u16(body, 0));
      return {};
    case kDnl:
    case kCom:
      return {};
    default:
      if (marker >= kApp0 && marker <= kApp15) return application_segment(marker, body);
      return "unknown marker";
  }
}

JpegSegments::Reason JpegSegments::application_segment(int marker, Bytes body) {
  if (marker == kApp0 && body.size() >= 14 && std::memcmp(body.data(), "JFIF", 5) == 0) {
    if (body[5] != 1) return "version of JFIF";
    jfif_ = true;
  }
  if (marker == kApp14 && body.size() >= 12 && std::memcmp(body.data(), "Adobe", 5) == 0) {
    adobe_ = body[11];
  }
  return {};
}

JpegSegments::Reason JpegSegments::frame_header(int marker, Bytes body) {
  if (has_frame() || body.size() < 6) return "damaged header";
  if (body[0] == 12) return "12 bits";
  if (body[0] != 8) return "damaged header";
  JpegFrame frame;
  frame.height = int(big_u16(body, 1));
  frame.width = int(big_u16(body, 3));
  const int count = body[5];
  if (body.size() != size_t(6 + 3 * count)) return "damaged header";
  if (count != 1 && count != 3 && count != 4) return "number of components";
  if (frame.width > kLargestJpegSide || frame.height > kLargestJpegSide) return "image size";
  for (int c = 0; c < count; ++c) {
    const Bytes field = body.subspan(6 + 3 * c, 3);
    JpegComponent& component = frame.component[c];
    component.id = field[0];
    component.h = stored_h_[c] = field[1] >> 4;
    component.v = stored_v_[c] = field[1] & 15;
    component.quantization_slot = field[2];
    if (component.h < 1 || component.h > 4 || component.v < 1 || component.v > 4) {
      return "damaged header";
    }
    for (int other = 0; other < c; ++other) {
      if (frame.component[other].id == component.id) return "damaged header";
    }
  }
  frame.count = count;
  if (!lay_out(frame)) {
    return frame.width == 0 || frame.height == 0 ? "image size" : "sampling factors";
  }
  frame_ = frame;
  progressive_ = marker == kSof2;
  for (auto& bits : bits_left_) bits.fill(-1);
  return {};
}

JpegColor JpegSegments::color() const {
  std::array<int, 4> ids{};
  for (int c = 0; c < frame_.count; ++c) ids[c] = frame_.component[c].id;
  return jpeg_color_of(frame_.count, ids, jfif_, adobe_);
}

JpegSegments::Reason JpegSegments::scan_header(Bytes body) {
  if (!has_frame() || body.empty()) return "damaged header";
  const int count = body[0];
  if (count < 1 || count > frame_.count || body.size() != size_t(4 + 2 * count)) {
    return "damaged header";
  }
  if (++scans_ > kMaxScans) return "too many scans";
  JpegScan scan{.count = count};
  int blocks = 0;
  for (int i = 0; i < count; ++i) {
    int c = 0;
    while (c < frame_.count && frame_.component[c].id != body[1 + 2 * i]) ++c;
    const int dc = body[2 + 2 * i] >> 4, ac = body[2 + 2 * i] & 15;
    if (c == frame_.count || dc > 3 || ac > 3) return "damaged header";
    // Components must be in the frame's order (B.2.3); libjpeg does not find one that is out of
    // order.
    if (c < i || (i > 0 && c <= scan.component[i - 1])) return "damaged header";
    scan.component[i] = c;
    scan.dc_slot[i] = dc;
    scan.ac_slot[i] = ac;
    blocks += frame_.component[c].h * frame_.component[c].v;
    JpegComponent& component = frame_.component[c];
    if (bits_left_[c][0] < 0) {  // its first scan
      if (component.quantization_slot > 3) return "damaged tables";
      if (!(tables_.quantization_seen >> component.quantization_slot & 1)) return "damaged tables";
      component.quantization = tables_.quantization[component.quantization_slot];
    }
  }
  if (count > 1 && blocks > kMaxBlocks) return "sampling factors";
  scan.first = body[1 + 2 * count];
  scan.last = body[2 + 2 * count];
  scan.high = body[3 + 2 * count] >> 4;
  scan.low = body[3 + 2 * count] & 15;
  scan.restart_interval = restart_interval_;
  scan.progressive = progressive_;
  scan_ = scan;
  // libjpeg decides at the first scan, and warns about unknown transforms.
  if (scans_ == 1) {
    frame_.color = color();
    const bool odd = (frame_.count == 3 && !jfif_ && adobe_ > 1) ||
                     (frame_.count == 4 && adobe_ > 0 && adobe_ != 2);
    if (odd) return "color transform";
  }
  return check_progression();
}

// G.1.1.1 and libjpeg's start_pass_phuff_decoder().
JpegSegments::Reason JpegSegments::check_progression() {
  const JpegScan& scan = scan_;
  if (!progressive_) {
    const bool usual = scan.first == 0 && scan.last == 63 && scan.high == 0 && scan.low == 0;
    if (!usual) return "scan parameters";
  } else if (scan.first == 0 ? scan.last != 0
                             : scan.last < scan.first || scan.last > 63 || scan.count != 1) {
    return "scan parameters";
  }
  if (scan.low > 13 || (scan.high != 0 && scan.low != scan.high - 1)) return "scan parameters";
  for (int i = 0; i < scan.count; ++i) {
    std::array<int8_t, 64>& left = bits_left_[scan.component[i]];
    if (scan.first > 0 && left[0] < 0) return "scan parameters";
    if (!progressive_ && left[0] == 0) return "scan parameters";  // already transmitted
    for (int k = scan.first; k <= scan.last; ++k) {
      if (scan.high != std::max<int>(left[k], 0)) return "scan parameters";
      left[k] = int8_t(scan.low);
    }
  }
  return {};
}

JpegSegments::Reason JpegSegments::complete() const {
  if (!has_frame()) return "damaged header";
  for (int c = 0; c < frame_.count; ++c) {
    for (const int8_t bits : bits_left_[c]) {
      // With progressive files, libjpeg then smooths the blocks: their pixels are
      // not in the coefficients alone.
      if (bits != 0) return "missing scans";
    }
  }
  return {};
}

}  // namespace headrace
