// SPDX-License-Identifier: Apache-2.0
// Blocks with announced reads that are not yet done. Neither this process nor any other evicts
// these blocks (BlockFolder::need). Not thread-safe; BlockCache calls it under its mutex.
//
// A block counts as done when three quarters of the announced bytes were read, since the bytes
// between records (headers, padding) are never read. As that may be too early, such a block stays
// until some more blocks are done.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>

#include "headrace/storage/block_folder.h"

namespace headrace {

class NeededBlocks {
 public:
  static constexpr size_t kStillNeeded = 8;  // done blocks that are not yet released

  explicit NeededBlocks(const BlockFolder& folder) : folder_(folder) {}
  ~NeededBlocks() {
    while (!blocks_.empty()) erase(blocks_.begin());
  }
  NeededBlocks(const NeededBlocks&) = delete;
  NeededBlocks& operator=(const NeededBlocks&) = delete;

  // Announces that this many bytes of a block, including those between its records, will be read.
  // If the total exceeds `most`, the least recently read blocks are released. False if one of these
  // was never read: the working set does not fit.
  bool add(const BlockName& name, uint64_t block_bytes, uint64_t bytes, uint64_t most) {
    const uint64_t more = bytes - bytes / 4;
    if (const auto found = of_name_.find(name); found != of_name_.end()) {
      found->second->left += more;
      blocks_.splice(blocks_.end(), blocks_, found->second);
      return true;
    }
    while (bytes_ + block_bytes > most) {
      if (blocks_.empty() || !blocks_.front().was_read) return false;
      erase(blocks_.begin());
    }
    blocks_.push_back({.name = name, .bytes = block_bytes, .left = more});
    of_name_[name] = std::prev(blocks_.end());
    bytes_ += block_bytes;
    folder_.need(name);
    return true;
  }
  // Counts bytes as read. Returns the block that this releases, if any: this one or an earlier one.
  std::optional<BlockName> read(const BlockName& name, uint64_t bytes) {
    const auto found = of_name_.find(name);
    if (found == of_name_.end()) return {};
    Block& block = *found->second;
    blocks_.splice(blocks_.end(), blocks_, found->second);
    block.was_read = true;
    if (block.left == 0) return {};
    block.left -= std::min(block.left, bytes);
    if (block.left > 0) return {};
    read_to_end_.push_back(name);
    if (read_to_end_.size() <= kStillNeeded) return {};
    const BlockName finished = read_to_end_.front();
    read_to_end_.pop_front();
    const auto last = of_name_.find(finished);
    if (last == of_name_.end() || last->second->left > 0) return {};  // announced again
    erase(last->second);
    return finished;
  }
  bool has(const BlockName& name) const { return of_name_.contains(name); }
  bool has(const std::string& file) const {
    const std::optional<BlockName> name = BlockName::from_file(file);
    return name && has(*name);
  }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Block {
    BlockName name;
    uint64_t bytes = 0, left = 0;  // size of the block; bytes of it not read yet
    bool was_read = false;
  };
  void erase(std::list<Block>::iterator block) {
    folder_.release_need(block->name);
    bytes_ -= block->bytes;
    of_name_.erase(block->name);
    blocks_.erase(block);
  }

  const BlockFolder& folder_;
  std::list<Block> blocks_;  // the least recently read one first
  std::unordered_map<BlockName, std::list<Block>::iterator, HashBlockName> of_name_;
  std::deque<BlockName> read_to_end_;  // done, but not yet released
  uint64_t bytes_ = 0;
};

}  // namespace headrace
