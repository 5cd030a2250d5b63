// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/parts/parts.h"

#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <string>

#include "headrace/codecs/image/jpeg/parts/remainder.h"
#include "headrace/codecs/image/jpeg/parts/remainder_form.h"
#include "headrace/codecs/image/jpeg/parts/scan_reader.h"
#include "headrace/codecs/image/jpeg/parts/scan_writer.h"
#include "headrace/codecs/image/jpeg/parts/segments.h"

namespace headrace {
namespace {

using namespace jpeg_marker;
using Bytes = std::span<const uint8_t>;
using Reason = std::string_view;

// The planes of a frame, without coefficients.
CoefficientPlane empty_plane(const JpegFrame& frame, int c) {
  const JpegComponent& component = frame.component[c];
  CoefficientPlane plane;
  plane.blocks_wide = component.blocks_wide;
  plane.blocks_high = component.blocks_high;
  plane.h_sampling = component.h;
  plane.v_sampling = component.v;
  return plane;
}

// Reads a file once.
class Splitter {
 public:
  explicit Splitter(Bytes jpeg) : jpeg_(jpeg) {}

  Reason split(JpegParts& parts) {
    if (jpeg_.size() < 4 || jpeg_[0] != 0xFF || jpeg_[1] != kSoi) return "no JPEG";
    at_ = 2;
    while (true) {
      Piece piece;
      if (const Reason reason = next_marker(piece); !reason.empty()) return reason;
      if (piece.marker == kEoi) {
        pieces_.push_back(piece);
        break;
      }
      if (const Reason reason = segment(piece); !reason.empty()) return reason;
    }
    if (const Reason reason = segments_.complete(); !reason.empty()) return reason;
    parts.frame = segments_.frame();
    for (int c = 0; c < parts.frame.count; ++c) {
      planes_[c].quantization = parts.frame.component[c].quantization;
    }
    parts.remainder = remainder();
    parts.planes = std::move(planes_);
    return {};
  }

 private:
  // A marker of the file and the data after it.
  struct Piece {
    int marker = 0;
    size_t fill = 0;
    Bytes body;
    ScanChoices choices;
  };

  Reason next_marker(Piece& piece) {
    if (at_ == jpeg_.size()) return "no end marker";
    if (jpeg_[at_] != 0xFF) return "bytes between segments";
    size_t code = at_ + 1;
    while (code < jpeg_.size() && jpeg_[code] == 0xFF) ++code;
    if (code == jpeg_.size()) return "no end marker";
    piece.marker = jpeg_[code];
    piece.fill = code - at_ - 1;
    if (piece.marker == 0 || piece.fill > remainder_form::kMaxFill) {
      return "bytes between segments";
    }
    at_ = code + 1;
    if (piece.marker == kSoi) return "damaged header";
    if (stands_alone(piece.marker)) return {};
    if (jpeg_.size() - at_ < 2) return "truncated";
    const size_t length = size_t(jpeg_[at_]) << 8 | jpeg_[at_ + 1];
    if (length < 2) return "damaged header";
    if (length > jpeg_.size() - at_) return "truncated";
    piece.body = jpeg_.subspan(at_ + 2, length - 2);
    at_ += length;
    return {};
  }

  Reason segment(Piece& piece) {
    if (!stands_alone(piece.marker)) {
      if (const Reason reason = segments_.take(piece.marker, piece.body); !reason.empty()) {
        return reason;
      }
    }
    if (piece.marker == kSos) {
      if (const Reason reason = scan(piece); !reason.empty()) return reason;
    }
    pieces_.push_back(std::move(piece));
    return {};
  }

  Reason scan(Piece& piece) {
    if (!blocks_) {
      if (const Reason reason = allocate(); !reason.empty()) return reason;
    }
    const JpegScan& scan = segments_.scan();
    std::array<const HuffmanSpec*, 4> dc{}, ac{};
    for (int i = 0; i < scan.count; ++i) {
      dc[i] = segments_.dc_table(scan.dc_slot[i]);
      ac[i] = segments_.ac_table(scan.ac_slot[i]);
      if (scan.count > 1) interleaved_ |= 1 << scan.component[i];
    }
    size_t read = 0;
    const Reason reason = reader_.read(segments_.frame(), scan, dc, ac, jpeg_.subspan(at_),
                                       *blocks_, piece.choices, read);
    at_ += read;
    return reason;
  }

  Reason allocate() {
    const JpegFrame& frame = segments_.frame();
    if (int64_t{frame.width} * frame.height > DecodeLimits().max_pixels) return "image size";
    uint64_t blocks = 0;
    for (int c = 0; c < frame.count; ++c) {
      planes_.push_back(empty_plane(frame, c));
      planes_[c].h_sampling = segments_.stored_h(c);
      planes_[c].v_sampling = segments_.stored_v(c);
      blocks += block_count(planes_[c]);
    }
    // Each block takes at least a bit, so the memory requested by a header is bounded by the file's
    // size.
    if (blocks > 8 * uint64_t{jpeg_.size()}) return "truncated";
    for (CoefficientPlane& plane : planes_) plane.coefficients.resize(block_count(plane) * 64);
    blocks_.emplace(frame, planes_);
    return {};
  }

  std::vector<uint8_t> remainder() {
    RemainderWriter out(segments_.frame());
    for (int c = 0; c < segments_.frame().count; ++c) {
      out.edge_blocks(c, *blocks_, interleaved_ >> c & 1);
    }
    for (const Piece& piece : pieces_) {
      if (piece.marker == kEoi) {
        out.end(piece.fill, jpeg_.subspan(at_));
      } else if (piece.marker == kSos) {
        out.scan(piece.fill, piece.body, piece.choices);
      } else if (stands_alone(piece.marker)) {
        out.marker(piece.marker, piece.fill);
      } else {
        out.segment(piece.marker, piece.fill, piece.body);
      }
    }
    return out.take();
  }

  const Bytes jpeg_;
  size_t at_ = 0;
  JpegSegments segments_;
  ScanReader reader_;
  std::vector<CoefficientPlane> planes_;
  std::optional<BlocksOf<CoefficientPlane>> blocks_;
  int interleaved_ = 0;  // one bit per component: whether a scan contains its blocks beyond the
                         // edge
  std::vector<Piece> pieces_;
};

bool same_layout(const JpegFrame& a, const JpegFrame& b) {
  if (a.width != b.width || a.height != b.height || a.count != b.count) return false;
  for (int c = 0; c < a.count; ++c) {
    if (a.component[c].h != b.component[c].h || a.component[c].v != b.component[c].v) return false;
  }
  return true;
}

class Joiner {
 public:
  // REQUIRES: the planes have the frame's sizes.
  explicit Joiner(const JpegFrame& frame, const JpegParts& parts)
      : frame_(frame), blocks_(frame, parts.planes), in_(frame_, parts.remainder) {}

  Result<std::vector<uint8_t>> join() {
    if (!in_.begin(blocks_))
      return inconsistent_parts("the form of the remainder is unknown or damaged");
    out_ = {0xFF, kSoi};
    while (true) {
      RemainderItem item;
      if (!in_.next(segments_.frame(), item)) return inconsistent_parts("the remainder is damaged");
      out_.insert(out_.end(), item.fill + 1, 0xFF);
      out_.push_back(uint8_t(item.marker));
      if (item.marker == kEoi) {
        out_.insert(out_.end(), item.body.begin(), item.body.end());
        return std::move(out_);
      }
      if (stands_alone(item.marker)) continue;
      if (item.body.size() > remainder_form::kLongestBody) {
        return inconsistent_parts("a segment is too long");
      }
      const size_t length = item.body.size() + 2;
      out_.insert(out_.end(), {uint8_t(length >> 8), uint8_t(length & 255)});
      out_.insert(out_.end(), item.body.begin(), item.body.end());
      if (const Reason reason = segments_.take(item.marker, item.body); !reason.empty()) {
        return inconsistent_parts("a segment of the remainder is damaged");
      }
      if (item.marker == kSos && !scan(item)) {
        return inconsistent_parts("a scan does not contain these coefficients");
      }
    }
  }

 private:
  bool scan(const RemainderItem& item) {
    if (!same_layout(segments_.frame(), frame_)) return false;
    const JpegScan& scan = segments_.scan();
    std::array<HuffmanCodes, 4> dc, ac;
    ScanTables<const HuffmanCodes> tables;
    for (int i = 0; i < scan.count; ++i) {
      const HuffmanSpec* const dc_spec = segments_.dc_table(scan.dc_slot[i]);
      const HuffmanSpec* const ac_spec = segments_.ac_table(scan.ac_slot[i]);
      if (dc_spec && dc[i].build(*dc_spec, HuffmanUse::kDC)) tables.dc[i] = &dc[i];
      if (ac_spec && ac[i].build(*ac_spec, HuffmanUse::kAC)) tables.ac[i] = &ac[i];
    }
    JpegBitWriter bits(out_);
    return write_scan(frame_, scan, blocks_, tables, item.choices, bits);
  }

  const JpegFrame& frame_;
  StoredBlocks blocks_;
  RemainderReader in_;
  JpegSegments segments_;
  std::vector<uint8_t> out_;
};

const ErrorCode kInconsistentParts{
    "HR0325", ErrorKind::kData, "parts do not form a JPEG",
    "The original JPEG file cannot be restored: its coefficients and the rest of the file, which "
    "are stored separately, do not belong together or are damaged. The images may still decode. "
    "Pack the files again from their originals."};

const ErrorCode kCannotSplit{
    "HR0326", ErrorKind::kUnsupported, "JPEG cannot be split into parts",
    "The file is stored unchanged: it is damaged, of a rare type, or encoded in a way that cannot "
    "be reproduced byte for byte from its coefficients. Nothing is lost; it only decodes no "
    "faster than before."};

}  // namespace

Result<JpegParts> read_jpeg_parts(Bytes jpeg) {
  try {
    JpegParts parts;
    if (const Reason reason = Splitter(jpeg).split(parts); !reason.empty()) {
      return cannot_split(reason);
    }
    return parts;
  } catch (const std::bad_alloc&) {
    return cannot_split("no memory");
  }
}

Result<JpegParts> split_jpeg(Bytes jpeg) {
  Result<JpegParts> parts = read_jpeg_parts(jpeg);
  if (!parts) return parts;
  const Result<std::vector<uint8_t>> again = join_jpeg(*parts);
  if (!again || !std::ranges::equal(*again, jpeg)) return cannot_split("does not re-encode");
  return parts;
}

Result<std::vector<uint8_t>> join_jpeg(const JpegParts& parts) {
  JpegFrame frame;
  if (!lay_out_parts(parts, frame))
    return inconsistent_parts("the coefficients do not fit the frame");
  try {
    return Joiner(frame, parts).join();
  } catch (const std::bad_alloc&) {
    return inconsistent_parts("no memory for the file");
  }
}

Error cannot_split(std::string_view reason) {
  return Error{.code = &kCannotSplit, .what = std::string(reason)};
}

Error inconsistent_parts(std::string_view what) {
  return Error{.code = &kInconsistentParts, .what = std::string(what)};
}

bool lay_out_parts(const JpegParts& parts, JpegFrame& frame) {
  frame = parts.frame;
  if (!lay_out(frame) || parts.planes.size() != size_t(frame.count)) return false;
  for (int c = 0; c < frame.count; ++c) {
    const CoefficientPlane& plane = parts.planes[c];
    if (plane.blocks_wide != frame.component[c].blocks_wide ||
        plane.blocks_high != frame.component[c].blocks_high ||
        plane.coefficients.size() != block_count(plane) * 64) {
      return false;
    }
  }
  return true;
}

}  // namespace headrace
