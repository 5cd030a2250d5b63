// SPDX-License-Identifier: Apache-2.0
// One block of a remote file, stored as a file in the cache folder: its bytes, then the file and
// range that they belong to, and a checksum of each 32 KiB.
//
// The format is private and parsed as hostile input: truncated or modified files, and blocks of
// other files, are rejected. Every read is verified against the checksums. All members may be
// called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/storage/storage.h"

namespace headrace {

// The file and range of a block. A file that was replaced has a different identity, so different
// blocks.
struct BlockId {
  std::string path;  // as shown to the user
  FileIdentity identity;
  uint64_t offset = 0, bytes = 0;
};

class BlockFile {
 public:
  static constexpr uint64_t kChunk = 32 << 10;

  // The footer, written after the block's bytes.
  static std::vector<uint8_t> footer(const BlockId& id, std::span<const uint8_t> bytes);
  // Takes ownership of the descriptor of a regular file. Null if the file is not a block.
  static std::unique_ptr<const BlockFile> open(int descriptor);
  ~BlockFile();
  BlockFile(const BlockFile&) = delete;
  BlockFile& operator=(const BlockFile&) = delete;

  const BlockId& id() const { return id_; }
  bool holds(const BlockId& wanted) const {
    return id_.identity == wanted.identity && id_.offset == wanted.offset &&
           id_.bytes == wanted.bytes;
  }
  enum class Got : uint8_t { kAll, kWouldWait, kDamaged };
  // Fills `out` with the block's bytes starting at `begin`. Without `may_wait`, only from the page
  // cache. REQUIRES: the range is within the block.
  Got read(uint64_t begin, std::span<uint8_t> out, bool may_wait) const;
  // Sets its modification time, by which blocks are evicted: the oldest first.
  void set_time(int64_t seconds) const;
  bool is_deleted() const;

 private:
  BlockFile(int descriptor, BlockId id, std::vector<uint32_t> sums)
      : descriptor_(descriptor), id_(std::move(id)), sums_(std::move(sums)) {}

  const int descriptor_;
  const BlockId id_;
  const std::vector<uint32_t> sums_;  // one per chunk
};

}  // namespace headrace
