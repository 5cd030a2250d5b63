// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/hdf5/hdf5_chunk_cache.h"

namespace headrace {

std::shared_ptr<Hdf5ChunkCache::Chunk> Hdf5ChunkCache::find(const Key& key, size_t bytes) {
  const MutexLock lock(mutex_);
  if (const auto known = places_.find(key); known != places_.end()) {
    entries_.splice(entries_.begin(), entries_, known->second);
    return entries_.front().chunk;
  }
  while (!entries_.empty() && bytes_ + bytes > max_bytes_) {
    bytes_ -= entries_.back().bytes;
    places_.erase(entries_.back().key);
    entries_.pop_back();
  }
  entries_.push_front({key, bytes, std::make_shared<Chunk>()});
  places_[key] = entries_.begin();
  bytes_ += bytes;
  return entries_.front().chunk;
}

Result<void> Hdf5ChunkCache::get(uint64_t dataset, uint64_t cell, size_t bytes,
                                 const std::function<Result<void>(std::span<uint8_t>)>& unpack,
                                 const std::function<void(std::span<const uint8_t>)>& use) {
  const std::shared_ptr<Chunk> chunk = find({dataset, cell}, bytes);
  {
    const MutexLock lock(chunk->mutex);
    if (!chunk->ready) {
      chunk->bytes.resize(bytes);
      // If it fails, the next caller retries, and gets its own error.
      if (Result<void> made = unpack({chunk->bytes.data(), bytes}); !made) return made;
      chunk->ready = true;
    }
  }
  use(chunk->bytes.bytes());
  return {};
}

}  // namespace headrace
