// SPDX-License-Identifier: Apache-2.0
// An LRU cache of decompressed chunks that several records share, so that sequential reading
// decompresses each chunk once. Limited in bytes. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/base/mutex.h"

namespace headrace {

class Hdf5ChunkCache {
 public:
  explicit Hdf5ChunkCache(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  // Passes the chunk to `use`; if it is not cached, `unpack` decompresses it first. Concurrent
  // requests for the same chunk wait for the first of them. One chunk may be larger than the limit:
  // then it is the only one kept.
  Result<void> get(uint64_t dataset, uint64_t cell, size_t bytes,
                   const std::function<Result<void>(std::span<uint8_t>)>& unpack,
                   const std::function<void(std::span<const uint8_t>)>& use);

 private:
  struct Key {
    uint64_t dataset, cell;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const { return key.dataset * 0x9E3779B97F4A7C15 ^ key.cell; }
  };
  struct Chunk {
    Mutex mutex;
    bool ready GUARDED_BY(mutex) = false;
    Buffer bytes;  // immutable once it is ready
  };
  struct Entry {
    Key key;
    size_t bytes;
    // Shared: a thread may still use a chunk that another one has evicted.
    std::shared_ptr<Chunk> chunk;
  };

  std::shared_ptr<Chunk> find(const Key& key, size_t bytes);

  const uint64_t max_bytes_;
  Mutex mutex_;
  std::list<Entry> entries_ GUARDED_BY(mutex_);  // most recently used first
  std::unordered_map<Key, std::list<Entry>::iterator, Hash> places_ GUARDED_BY(mutex_);
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace headrace
