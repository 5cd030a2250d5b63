// SPDX-License-Identifier: Apache-2.0
// JpegParts::remainder: the data of a JPEG file apart from its coefficients, in
// order, without repeating the frame's (docs/spec/jpeg-remainder.md). The writer
// borrows the frame; the reader borrows the bytes, which may be hostile. One
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/headers/frame.h"
#include "headrace/codecs/image/jpeg/parts/scan.h"

namespace headrace {

class RemainderWriter {
 public:
  // The frame as in JpegSegments: with quantization, and the file's identifiers and slots.
  explicit RemainderWriter(const JpegFrame& frame);

  // Must be called first, for each component in order: writes the blocks of component c beyond the
  // edge that differ from the prediction. `sent`: whether any scan contains such blocks.
  void edge_blocks(int c, BlocksOf<CoefficientPlane>& blocks, bool sent);

  // Then the markers of the file, in order. `fill`: additional 0xFF bytes before it.
  void marker(int code, size_t fill);  // a standalone marker
  void segment(int code, size_t fill, std::span<const uint8_t> body);
  void scan(size_t fill, std::span<const uint8_t> header, const ScanChoices& choices);
  // The end marker, and the data after it.
  void end(size_t fill, std::span<const uint8_t> after);

  std::vector<uint8_t> take() { return std::move(out_); }

 private:
  void number(uint64_t value);
  void signed_number(int64_t value);
  void bytes(std::span<const uint8_t> bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  void begin(int code, size_t fill);
  void huffman_tables(std::span<const uint8_t> body);
  void quantization_tables(std::span<const uint8_t> body);
  void frame_header(std::span<const uint8_t> body);

  const JpegFrame& frame_;
  std::vector<uint8_t> out_, edges_;
  bool has_edges_ = false;
};

struct RemainderItem {
  int marker = 0;
  size_t fill = 0;
  std::vector<uint8_t> body;  // of a segment; after the end marker: the rest of the file
  ScanChoices choices;        // of a scan
};

class RemainderReader {
 public:
  // `frame`: from the parts.
  RemainderReader(const JpegFrame& frame, std::span<const uint8_t> bytes)
      : frame_(frame), in_(bytes) {}

  // The format's version, and blocks beyond the edge: predicted, or as stored. False if damaged, as
  // for next().
  bool begin(BlocksOf<const CoefficientPlane>& blocks);
  // `header`: the frame as known from the items so far; its identifiers and slots are needed.
  bool next(const JpegFrame& header, RemainderItem& item);

 private:
  bool number(uint64_t& value);
  bool signed_number(int& value);
  bool byte(uint8_t& value);
  bool append(size_t count, std::vector<uint8_t>& to);
  bool edge_block(int16_t* block);
  bool huffman_tables(std::vector<uint8_t>& body);
  bool quantization_tables(std::vector<uint8_t>& body);
  bool frame_header(std::vector<uint8_t>& body);
  bool scan(const JpegFrame& header, RemainderItem& item);

  const JpegFrame& frame_;
  std::span<const uint8_t> in_;
};

}  // namespace headrace
