// SPDX-License-Identifier: Apache-2.0
// Reads ranges of a file with one request each, all at once, if its storage is asynchronous: reads
// of them on this thread take them from memory as long as this object exists. For structures of
// many small parts that are close together. Of local files nothing is read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "headrace/storage/file.h"
#include "headrace/storage/later_storage.h"
#include "headrace/storage/staged_reads.h"

namespace headrace {

class ReadAtOnce {
 public:
  static constexpr uint64_t kMost = uint64_t{64} << 20;

  struct Range {
    uint64_t offset, bytes;
  };
  // More than kMost, and what cannot be read, is left to the reads themselves.
  ReadAtOnce(const File& file, std::vector<Range> ranges) {
    if (!file.answers_later()) return;
    std::vector<LaterRead> reads;
    for (const Range& range : ranges) {
      if (range.bytes == 0 || range.bytes > kMost) continue;
      reads.push_back({.piece = file.piece(range.offset, range.bytes)});
    }
    for (LaterRead& read : read_and_wait(storage_of(file.path()), std::move(reads))) {
      if (!read.result) continue;
      const auto memory = std::make_shared<Buffer>(std::move(read.bytes));
      pieces_.push_back(
          {.piece = std::move(read.piece), .bytes = memory->bytes(), .memory = memory});
    }
    if (!pieces_.empty()) staged_.emplace(pieces_);
  }

 private:
  std::vector<StagedPiece> pieces_;
  std::optional<StagedReads> staged_;
};

}  // namespace headrace
