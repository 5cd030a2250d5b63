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
  std::shared_ptr<Buffer> memory;  // shared: with a record that has the same bytes
  bool alone = false;  // `bytes` are all of `memory`, which no other reader has: take() moves it
};

// Stages pieces for the calling thread, for as long as it lives. May be nested; the inner one
// counts.
class StagedReads {
 public:
  explicit StagedReads(std::span<StagedPiece> pieces);
  ~StagedReads();
  StagedReads(const StagedReads&) = delete;
  StagedReads& operator=(const StagedReads&) = delete;

  // The bytes of a piece, if they are staged on this thread.
  static std::optional<std::span<const uint8_t>> find(std::string_view path, uint64_t offset,
                                                      uint64_t bytes);
  // Moves a staged piece of exactly these bytes to `out` without a copy, if it has no other reader.
  // It is then no longer staged. False: `out` is unchanged.
  static bool take(std::string_view path, uint64_t offset, uint64_t bytes, Buffer& out);

 private:
  const std::span<StagedPiece> outer_;
};

}  // namespace headrace
