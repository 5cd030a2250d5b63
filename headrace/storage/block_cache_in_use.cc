// SPDX-License-Identifier: Apache-2.0
// The block cache that this process reads through.
#include <algorithm>
#include <atomic>
#include <iterator>
#include <list>
#include <map>
#include <string>

#include "headrace/storage/block_cache.h"

namespace headrace {
namespace {

std::atomic<BlockCache*> in_use_now{nullptr};

struct OneUse {
  BlockCache* cache;
  uint64_t limit;
};

struct Uses {
  Mutex mutex;
  std::map<std::string, BlockCache*> made
      GUARDED_BY(mutex);                     // never destroyed: reads may be in progress at exit
  std::list<OneUse> uses GUARDED_BY(mutex);  // the latest is last
  BlockCache::UsePtr of_environment;         // set once, before others read it

  // Applies the largest limit that is still requested.
  void apply() REQUIRES_LOCK(mutex) {
    in_use_now = uses.empty() ? nullptr : uses.back().cache;
    for (const auto& [path, cache] : made) {
      uint64_t most = 0;
      for (const OneUse& use : uses) {
        if (use.cache == cache) most = std::max(most, use.limit);
      }
      if (most > 0) cache->set_limit(most);
    }
  }
};

Uses& uses_of_process() {
  static Uses* const one = new Uses;  // outlives all reads at exit
  return *one;
}

}  // namespace

BlockCache* BlockCache::in_use() {
  [[maybe_unused]] static const bool asked_environment = [] {
    const uint64_t limit = limit_from_environment();
    if (limit > 0) uses_of_process().of_environment = use(limit);
    return true;
  }();
  return in_use_now;
}

BlockCache* BlockCache::exchange(BlockCache* cache) { return in_use_now.exchange(cache); }

BlockCache::UsePtr BlockCache::use(uint64_t limit) {
  const CacheDirectory cache = CacheDirectory::of_user();
  Uses& all = uses_of_process();
  MutexLock lock(all.mutex);
  BlockCache*& here = all.made[cache.path()];
  if (!here) here = new BlockCache(cache, {.limit = limit});
  (void)checked_limit({.limit = limit, .block_bytes = here->block_bytes_});
  all.uses.push_back({here, limit});
  all.apply();
  return {here, [&all, mine = std::prev(all.uses.end())](BlockCache*) {
            MutexLock held(all.mutex);
            all.uses.erase(mine);
            all.apply();
          }};
}

}  // namespace headrace
