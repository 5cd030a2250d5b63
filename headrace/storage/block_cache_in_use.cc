// SPDX-License-Identifier: Apache-2.0
// The block cache that this process reads through.
#include <algorithm>
#include <atomic>
#include <iterator>
#include <list>
#include <map>
#include <string>
#include <utility>

#include "headrace/base/per_process.h"
#include "headrace/storage/block_cache.h"

namespace headrace {
namespace {

std::atomic<BlockCache*> in_use_now{nullptr};
std::atomic<bool> is_inherited{false};  // in a forked process: all caches are the parent's

struct OneUse {
  CacheDirectory folder;
  uint64_t limit;
};

struct Uses {
  std::map<std::string, BlockCache*> made;  // never destroyed: reads may be in progress at exit
  std::list<OneUse> uses;                   // the latest is last
  BlockCache::UsePtr of_environment;        // set once, before others read it

  BlockCache& cache_of(const OneUse& use) {
    BlockCache*& here = made[use.folder.path()];
    if (!here) here = new BlockCache(use.folder, {.limit = use.limit});
    return *here;
  }
  // Applies the largest limit that is still requested.
  void apply() {
    in_use_now = uses.empty() ? nullptr : &cache_of(uses.back());
    for (const auto& [path, cache] : made) {
      uint64_t most = 0;
      for (const OneUse& use : uses) {
        if (use.folder.path() == path) most = std::max(most, use.limit);
      }
      if (most > 0) cache->set_limit(most);
    }
  }
  // A forked process has neither the threads nor the reads in progress of its parent's caches,
  // which are abandoned.
  void replace_inherited() {
    if (!is_inherited) return;
    made.clear();
    apply();
    is_inherited = false;
  }
};

Mutex& mutex_of_uses() {
  static Mutex& mutex = *new Mutex;
  return mutex;
}

Uses& uses_of_process() REQUIRES_LOCK(mutex_of_uses()) {
  static Uses& one = *new Uses;  // outlives all reads at exit
  [[maybe_unused]] static const int kept_free = free_over_fork<mutex_of_uses>();
  [[maybe_unused]] static const int marked =
      pthread_atfork(nullptr, nullptr, [] { is_inherited = true; });
  one.replace_inherited();
  return one;
}

}  // namespace

BlockCache* BlockCache::in_use() {
  [[maybe_unused]] static const bool asked_environment = [] {
    const uint64_t limit = limit_from_environment();
    if (limit == 0) return false;
    UsePtr use = BlockCache::use(limit);
    MutexLock lock(mutex_of_uses());
    uses_of_process().of_environment = std::move(use);
    return true;
  }();
  if (is_inherited) {
    MutexLock lock(mutex_of_uses());
    (void)uses_of_process();
  }
  return in_use_now;
}

BlockCache* BlockCache::exchange(BlockCache* cache) { return in_use_now.exchange(cache); }

BlockCache::UsePtr BlockCache::use(uint64_t limit) {
  const CacheDirectory folder = CacheDirectory::of_user();
  MutexLock lock(mutex_of_uses());
  Uses& all = uses_of_process();
  BlockCache& here = all.cache_of({folder, limit});
  (void)checked_limit({.limit = limit, .block_bytes = here.block_bytes_});
  all.uses.push_back({folder, limit});
  all.apply();
  return {&here, [mine = std::prev(all.uses.end())](BlockCache*) {
            MutexLock held(mutex_of_uses());
            uses_of_process().uses.erase(mine);
            uses_of_process().apply();
          }};
}

}  // namespace headrace
