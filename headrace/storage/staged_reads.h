// SPDX-License-Identifier: Apache-2.0
// Bytes that have arrived from an asynchronous storage and serve the reads of one thread.
//
// Read-ahead knows which pieces of which files a record needs, but not what the source does with
// them. So the source reads as usual, on a thread where these pieces are staged. A read within a
// piece is served from the piece; any other read, and a read of another version of the file, goes
// to the storage. `version` is the reader's FileIdentity; null: any.
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
  std::shared_ptr<Buffer> memory;  // shared: with records made of the same bytes
  bool alone = false;  // `bytes` is all of `memory`, with no other user: take() moves it
};

// Stages pieces for the calling thread while this object exists. May be nested; the inner one
// applies.
class StagedReads {
 public:
  explicit StagedReads(std::span<StagedPiece> pieces);
  ~StagedReads();
  StagedReads(const StagedReads&) = delete;
  StagedReads& operator=(const StagedReads&) = delete;

  // The bytes of a piece, if they are staged on this thread.
  static std::optional<std::span<const uint8_t>> find(std::string_view path, uint64_t offset,
                                                      uint64_t bytes, const FileIdentity* version);
  // Moves a staged piece of exactly these bytes to `out` without a copy, if it has no other user.
  // It is then no longer staged. False: `out` is unchanged.
  static bool take(std::string_view path, uint64_t offset, uint64_t bytes,
                   const FileIdentity* version, Buffer& out);
  // The memory of a staged piece of exactly these bytes, to be used by others as well; null if
  // there is none.
  static std::shared_ptr<const Buffer> share(std::string_view path, uint64_t offset, uint64_t bytes,
                                             const FileIdentity* version);

 private:
  const std::span<StagedPiece> outer_;
};

}  // namespace headrace
