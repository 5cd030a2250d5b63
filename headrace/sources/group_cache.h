// SPDX-License-Identifier: Apache-2.0
// The record groups (record_groups.h) of a source that are in memory, or requested.
//
// A group is requested and decoded once, however many threads need it; they wait for the one that
// decodes it. If there is no room, groups whose records have all been read are evicted first, then
// the least recently used groups. Prefetching only evicts groups whose records have all been read.
// Thread-safe.
//
// Groups are destroyed without holding the lock: their memory may belong to Python, and freeing it
// takes the GIL (Note [Why daemon threads stay away], bindings/released_gil.h).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/sources/record_groups.h"

namespace headrace {

class GroupCache : public std::enable_shared_from_this<GroupCache> {
 public:
  // `groups` must live until close(). Requests in progress may keep this object alive longer, but
  // then do not use `groups`.
  explicit GroupCache(const RecordGroups& groups);

  // The decoded group, to read one of its records; may wait. After a read error, the next call
  // retries.
  Result<SourcePtr> take(int64_t group) EXCLUDES_LOCK(mutex_);
  // Groups [begin, end) will be read soon, after those of earlier calls.
  void announce(int64_t begin, int64_t end) EXCLUDES_LOCK(mutex_);
  // Must be the last call: releases all groups, and cancels requests in progress, which may keep
  // this object alive, but no groups.
  void close() EXCLUDES_LOCK(mutex_);

 private:
  enum class State : uint8_t { kComing, kHere, kDecoding, kDecoded, kFailed };
  struct Held {
    State state = State::kComing;
    std::vector<Buffer> bytes = {};
    SourcePtr source = {};
    std::optional<Error> failure = {};
    uint64_t counted = 0, last_used = 0;
    int64_t unread = 0;    // records not yet read
    bool awaited = false;  // a thread waits for it
  };
  using HeldPtr = std::shared_ptr<Held>;  // shared: with requests and waiting threads

  enum class Next : uint8_t { kUse, kFail, kRequest, kDecode, kWait };
  Next next(int64_t group, HeldPtr& held, std::vector<HeldPtr>& gone) REQUIRES_LOCK(mutex_);
  bool use(int64_t group, Held& held) REQUIRES_LOCK(mutex_);
  Result<void> wait(int64_t group) REQUIRES_LOCK(mutex_);
  uint64_t cost_of(int64_t group) const;
  int64_t size_of(int64_t group) const;
  bool has_room(uint64_t bytes) const REQUIRES_LOCK(mutex_);
  void make_room(uint64_t bytes, bool of_read_ones, std::vector<HeldPtr>& gone)
      REQUIRES_LOCK(mutex_);
  HeldPtr enter(int64_t group) REQUIRES_LOCK(mutex_);
  void request(int64_t group, const HeldPtr& held) EXCLUDES_LOCK(mutex_);
  void arrived(int64_t group, HeldPtr of, RangeBytes bytes) EXCLUDES_LOCK(mutex_);
  void decode(int64_t group, Held& held) EXCLUDES_LOCK(mutex_);
  void end_decoding(int64_t group, Held& held, Result<SourcePtr> decoded) EXCLUDES_LOCK(mutex_);
  void give_up(int64_t group, Held& held) EXCLUDES_LOCK(mutex_);
  void fail(int64_t group, Held& held, Error error) REQUIRES_LOCK(mutex_);
  void request_announced() EXCLUDES_LOCK(mutex_);

  const RecordGroups& groups_;
  const bool async_;
  mutable Mutex mutex_;
  Condition changed_;
  std::map<int64_t, HeldPtr> held_ GUARDED_BY(mutex_);
  std::deque<int64_t> announced_ GUARDED_BY(mutex_);
  uint64_t counted_ GUARDED_BY(mutex_) = 0, clock_ GUARDED_BY(mutex_) = 0;
  int coming_ GUARDED_BY(mutex_) = 0;  // groups being requested or decoded
  bool decoding_ GUARDED_BY(mutex_) = false;
  int64_t last_ GUARDED_BY(mutex_) = -1;  // the group most recently begun
  std::stop_source unneeded_;
};

}  // namespace headrace
