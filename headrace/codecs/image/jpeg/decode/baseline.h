// SPDX-License-Identifier: Apache-2.0
// Our own decoder of ordinary JPEG files, several images in parallel lanes.
//
// Each lane holds one image; walk() (kernels/jpeg/huffman.h) decodes the bits of all lanes at once
// and stops whenever one of them has finished a run of MCUs: a row, or the rest of a restart
// interval. The lane then converts the run to coefficients of the window's blocks and the
// coefficients to samples and, once an MCU row is complete, passes its pixel rows to the sink. When
// an image is finished, its lane takes the next one. The window determines the work: rows below it
// are not decoded; rows above it are only entropy-decoded without making coefficients, or skipped
// if a row index says where to begin.
//
// If anything in the file is suspicious, decoding ends with kRefused, and libjpeg decodes the whole
// image. Rows already delivered to the sink are correct, and are not sent again (RemainingRows).
// For one thread.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/decode/row_index.h"
#include "headrace/codecs/image/jpeg/headers/header.h"

namespace headrace {

class JpegBaselineDecoder {
 public:
  JpegBaselineDecoder();
  ~JpegBaselineDecoder();

  enum class Outcome : uint8_t { kDecoded, kRefused };
  struct Task {
    DecodeJob* job = nullptr;
    Outcome outcome = Outcome::kRefused;
    int delivered = 0;  // rows of the window that the sink has received
  };
  void decode(std::span<Task> tasks);

  // The row index of a whole image; empty if our decoder does not handle it, or if it is damaged.
  std::vector<uint8_t> row_index(std::span<const uint8_t> bytes,
                                 int spacing = JpegRowIndex::kSpacing);

  // Upper bound on the memory for decoding such an image; for ImageHeader::working_bytes.
  static size_t working_bytes(const JpegHeader& header, size_t file_bytes);

 private:
  class Lane;
  std::array<std::unique_ptr<Lane>, kMaxLanes> lanes_;
  std::vector<Task*> queue_;
};

// Forwards rows and counts them.
class CountedRows final : public RowSink {
 public:
  void begin(RowSink* sink) {
    sink_ = sink;
    count_ = 0;
  }
  void rows(const RowBlock& block) override {
    sink_->rows(block);
    count_ = block.y + block.count;
  }
  int count() const { return count_; }

 private:
  RowSink* sink_ = nullptr;
  int count_ = 0;
};

// Forwards only the rows starting at `first`.
class RemainingRows final : public RowSink {
 public:
  RemainingRows(RowSink* sink, int first) : sink_(sink), first_(first) {}
  void rows(const RowBlock& block) override;

 private:
  RowSink* sink_;
  int first_;
};

}  // namespace headrace
