// SPDX-License-Identifier: Apache-2.0
// The blocks of the cache that this process has open: the kMax most recently used. Not
// thread-safe; BlockCache uses it under its mutex.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>

#include "headrace/storage/block_folder.h"

namespace headrace {

using BlockPtr = std::shared_ptr<const BlockFile>;  // shared: with reads in progress

class OpenBlocks {
 public:
  static constexpr size_t kMax = 64;

  BlockPtr find(const BlockName& name) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return nullptr;
    blocks_.splice(blocks_.begin(), blocks_, found->second);
    return found->second->second;
  }
  void add(const BlockName& name, BlockPtr block) {
    erase(name);
    blocks_.emplace_front(name, std::move(block));
    by_name_[name] = blocks_.begin();
    if (blocks_.size() > kMax) erase(BlockName(blocks_.back().first));
  }
  void erase(const BlockName& name) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return;
    blocks_.erase(found->second);
    by_name_.erase(found);
  }
  // Closes blocks that were evicted: until then they occupy disk space.
  void close_deleted() {
    for (auto each = blocks_.begin(); each != blocks_.end();) {
      const auto next = std::next(each);
      if (each->second->is_deleted()) erase(BlockName(each->first));
      each = next;
    }
  }

 private:
  std::list<std::pair<BlockName, BlockPtr>> blocks_;
  std::unordered_map<BlockName, std::list<std::pair<BlockName, BlockPtr>>::iterator, HashBlockName>
      by_name_;
};

}  // namespace headrace
