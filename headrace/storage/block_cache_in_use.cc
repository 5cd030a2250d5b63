// SPDX-License-Identifier: Apache-2.0
// The cache of blocks that this process reads through.
#include <atomic>
#include <map>
#include <string>

#include "headrace/storage/block_cache.h"

namespace headrace {
namespace {

std::atomic<BlockCache*> in_use_now{nullptr};

}  // namespace

BlockCache* BlockCache::in_use() {
  static const bool looked = [] {
    if (const uint64_t limit = limit_of_environment(); limit > 0) use(limit);
    return true;
  }();
  (void)looked;
  return in_use_now;
}

BlockCache* BlockCache::exchange(BlockCache* cache) { return in_use_now.exchange(cache); }

void BlockCache::use(uint64_t limit) {
  static Mutex* const mutex = new Mutex;
  static auto* const caches = new std::map<std::string, BlockCache*>;
  const CacheDirectory cache = CacheDirectory::of_user();
  MutexLock lock(*mutex);
  BlockCache*& here = (*caches)[cache.path()];
  if (here) {
    here->raise_limit(limit);
  } else {
    here =
        new BlockCache(cache, {.limit = limit});  // reads may be under way until the process ends
  }
  in_use_now = here;
}

}  // namespace headrace
