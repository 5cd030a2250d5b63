// SPDX-License-Identifier: Apache-2.0
// Coefficients -> an ordinary baseline file: JFIF or Adobe marker, tables, one
// scan.
#include <algorithm>
#include <initializer_list>

#include "headrace/codecs/image/jpeg/parts/parts.h"
#include "headrace/codecs/image/jpeg/parts/remainder_form.h"
#include "headrace/codecs/image/jpeg/parts/scan_writer.h"
#include "headrace/codecs/image/jpeg/parts/segments.h"

namespace headrace {
namespace {

using namespace jpeg_marker;
using remainder_form::kJfifBody;
using remainder_form::quantization_body;

class BaselineWriter {
 public:
  BaselineWriter(const JpegFrame& frame, const JpegParts& parts)
      : frame_(frame), blocks_(frame, parts.planes) {
    for (int c = 0; c < frame.count; ++c) {
      for_each_edge_block(frame, c, blocks_,
                          [](size_t, int16_t* block, int16_t predicted) { block[0] = predicted; });
      scan_.component[c] = c;
      group_[c] = frame.color != JpegColor::kRGB && (c == 1 || c == 2);
    }
    scan_.count = frame.count;
  }

  Result<std::vector<uint8_t>> write() {
    if (blocks_in_mcu() > 10) return inconsistent_parts("too many blocks for one scan");
    if (!make_tables())
      return inconsistent_parts("coefficients outside the range of baseline JPEG");
    out_ = {0xFF, kSoi};
    color_segment();
    quantization_segments();
    frame_header();
    for (int group = 0; group <= group_[1]; ++group) {
      huffman_segment(group, dc_[group]);
      huffman_segment(16 | group, ac_[group]);
    }
    scan_header();
    if (!write_data()) return inconsistent_parts("coefficients outside the range of baseline JPEG");
    out_.insert(out_.end(), {0xFF, kEoi});
    return std::move(out_);
  }

 private:
  int blocks_in_mcu() const {
    int blocks = 0;
    for (int c = 0; c < frame_.count; ++c) {
      blocks += frame_.component[c].h * frame_.component[c].v;
    }
    return blocks;
  }

  bool make_tables() {
    std::array<SymbolCounts, 2> dc{}, ac{};
    ScanTables<SymbolCounts> counts;
    for (int c = 0; c < frame_.count; ++c) {
      counts.dc[c] = &dc[group_[c]];
      counts.ac[c] = &ac[group_[c]];
    }
    if (!count_scan(frame_, scan_, blocks_, counts)) return false;
    for (int group = 0; group <= group_[1]; ++group) {
      dc_[group] = optimal_spec(dc[group]);
      ac_[group] = optimal_spec(ac[group]);
    }
    return true;
  }

  void segment(int marker, std::initializer_list<uint8_t> begin, std::span<const uint8_t> rest) {
    const size_t length = begin.size() + rest.size() + 2;
    out_.insert(out_.end(), {0xFF, uint8_t(marker), uint8_t(length >> 8), uint8_t(length & 255)});
    out_.insert(out_.end(), begin);
    out_.insert(out_.end(), rest.begin(), rest.end());
  }

  // Copies the markers that determine colors.
  void color_segment() {
    if (frame_.color == JpegColor::kGray || frame_.color == JpegColor::kYCbCr) {
      return segment(kApp0, {}, kJfifBody);
    }
    const uint8_t transform = frame_.color == JpegColor::kYCCK ? 2 : 0;
    segment(kApp14, {'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, transform}, {});
  }

  void quantization_segments() {
    for (int c = 0; c < frame_.count; ++c) {
      int same = 0;
      while (frame_.component[same].quantization != frame_.component[c].quantization) ++same;
      slot_[c] = same;
      if (same < c) continue;
      const std::array<uint16_t, 64>& table = frame_.component[c].quantization;
      const bool wide = std::ranges::max(table) > 255;
      extended_ = extended_ || wide;
      segment(kDqt, {uint8_t(wide << 4 | c)}, quantization_body(table, wide));
    }
  }

  void frame_header() {
    std::vector<uint8_t> body = remainder_form::default_frame_header(frame_);
    for (int c = 0; c < frame_.count; ++c) body[8 + 3 * c] = uint8_t(slot_[c]);
    segment(extended_ ? kSof1 : kSof0, {}, body);
  }

  void huffman_segment(int slot, const HuffmanSpec& spec) {
    segment(kDht, {uint8_t(slot)}, huffman_body(spec));
  }

  void scan_header() {
    std::vector<uint8_t> body = {uint8_t(frame_.count)};
    for (int c = 0; c < frame_.count; ++c) {
      body.insert(body.end(), {uint8_t(c + 1), uint8_t(group_[c] << 4 | group_[c])});
    }
    body.insert(body.end(), {0, 63, 0});
    segment(kSos, {}, body);
  }

  bool write_data() {
    std::array<HuffmanCodes, 2> dc, ac;
    ScanTables<const HuffmanCodes> tables;
    for (int group = 0; group <= group_[1]; ++group) {
      if (!dc[group].build(dc_[group], HuffmanUse::kDC)) return false;
      if (!ac[group].build(ac_[group], HuffmanUse::kAC)) return false;
    }
    for (int c = 0; c < frame_.count; ++c) {
      tables.dc[c] = &dc[group_[c]];
      tables.ac[c] = &ac[group_[c]];
    }
    JpegBitWriter bits(out_);
    return write_scan(frame_, scan_, blocks_, tables, ScanChoices(), bits);
  }

  const JpegFrame& frame_;
  StoredBlocks blocks_;
  JpegScan scan_;
  std::array<int, 4> group_{};  // index of the Huffman tables: 1 for chrominance
  std::array<int, 4> slot_{};   // index of the quantization table
  bool extended_ = false;       // steps above 255 are not baseline, but all readers support them
  std::array<HuffmanSpec, 2> dc_, ac_;
  std::vector<uint8_t> out_;
};

}  // namespace

Result<std::vector<uint8_t>> baseline_jpeg(const JpegParts& parts) {
  JpegFrame frame;
  if (!lay_out_parts(parts, frame))
    return inconsistent_parts("the coefficients do not fit the frame");
  return BaselineWriter(frame, parts).write();
}

}  // namespace headrace
