// SPDX-License-Identifier: Apache-2.0
// Bytes that have arrived from an asynchronous storage, for the reads of one thread.
//
// Read-ahead knows which pieces of which files a record is made of, but not what the source does
// with them. So it lets the source read as ever, on a thread where these pieces are staged: a read
// that lies within one takes its bytes from there, and any other asks the storage.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headrace/storage/storage.h"

namespace headrace {

struct StagedPiece {
  FilePiece piece;
  std::span<const uint8_t> bytes;
  std::shared_ptr<const Buffer> memory;  // shared: neighbors arrive in one read
};

// Stages pieces for the calling thread, for as long as it lives. May be nested; the inner one
// counts.
class StagedReads {
 public:
  explicit StagedReads(std::span<const StagedPiece> pieces);
  ~StagedReads();
  StagedReads(const StagedReads&) = delete;
  StagedReads& operator=(const StagedReads&) = delete;

  // The bytes of a piece, where they are staged on this thread.
  static std::optional<std::span<const uint8_t>> find(std::string_view path, uint64_t offset,
                                                      uint64_t bytes);

 private:
  const std::span<const StagedPiece> outer_;
};

}  // namespace headrace
