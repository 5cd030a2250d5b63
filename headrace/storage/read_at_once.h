// SPDX-License-Identifier: Apache-2.0
// Bytes of a file that are read by one request where its storage is asynchronous: reads of them on
// this thread take them from memory for as long as it lives. For what is made of many small parts
// that lie together. Of local files nothing is read.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "headrace/storage/file.h"
#include "headrace/storage/staged_reads.h"

namespace headrace {

class ReadAtOnce {
 public:
  static constexpr uint64_t kMost = uint64_t{64} << 20;

  // More than kMost, or what cannot be read, is left to the reads themselves.
  ReadAtOnce(const File& file, uint64_t offset, uint64_t bytes) {
    if (!file.answers_later() || bytes == 0 || bytes > kMost) return;
    const auto memory = std::make_shared<Buffer>(bytes);
    if (!file.read(offset, {memory->data(), memory->size()})) return;
    pieces_[0] = {.piece = file.piece(offset, bytes), .bytes = memory->bytes(), .memory = memory};
    staged_.emplace(pieces_);
  }

 private:
  std::array<StagedPiece, 1> pieces_;
  std::optional<StagedReads> staged_;
};

}  // namespace headrace
