// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/group_cache.h"

#include <algorithm>
#include <utility>

#include "headrace/storage/read_deadline.h"

namespace headrace {
namespace {

constexpr size_t kMinHeld = 4;
constexpr size_t kMaxAnnounced = 4096;
// Prefetched bytes when groups are read in sequence.
constexpr uint64_t kAheadBytes = uint64_t{64} << 20;

}  // namespace

GroupCache::GroupCache(const RecordGroups& groups)
    : groups_(groups), async_(groups.files->is_async()) {}

uint64_t GroupCache::cost_of(int64_t group) const {
  const RecordGroups::Group& of = groups_.groups[static_cast<size_t>(group)];
  uint64_t bytes = 0;
  for (const FileRange& range : of.ranges) bytes += range.bytes;
  return std::max(bytes, of.decoded_bytes);
}

int64_t GroupCache::size_of(int64_t group) const {
  const auto at = static_cast<size_t>(group);
  return groups_.groups[at].end - (at == 0 ? 0 : groups_.groups[at - 1].end);
}

bool GroupCache::has_room(uint64_t bytes) const {
  return held_.size() < kMinHeld ||
         (counted_ < groups_.memory && bytes <= groups_.memory - counted_);
}

void GroupCache::make_room(uint64_t bytes, bool of_read_ones, std::vector<HeldPtr>& gone) {
  while (!has_room(bytes)) {
    auto victim = held_.end();
    for (auto each = held_.begin(); each != held_.end(); ++each) {
      const Held& held = *each->second;
      const bool is_busy = held.state == State::kComing || held.state == State::kDecoding;
      if (is_busy || held.awaited || (of_read_ones && held.unread > 0)) continue;
      const auto rank = [](const Held& of) { return std::pair(of.unread > 0, of.last_used); };
      if (victim == held_.end() || rank(held) < rank(*victim->second)) victim = each;
    }
    if (victim == held_.end()) return;
    gone.push_back(victim->second);
    counted_ -= victim->second->counted;
    held_.erase(victim);
  }
}

GroupCache::HeldPtr GroupCache::enter(int64_t group) {
  auto held = std::make_shared<Held>();
  held->counted = cost_of(group);
  held->last_used = ++clock_;
  held->unread = size_of(group);
  held_[group] = held;
  counted_ += held->counted;
  ++coming_;
  return held;
}

void GroupCache::request(int64_t group, const HeldPtr& held) {
  try {
    fetch_ranges(
        *groups_.files, groups_.groups[static_cast<size_t>(group)].ranges,
        // `of`: a capture of `held` itself would be const, so moving it would copy it.
        [self = shared_from_this(), group, of = HeldPtr(held)](RangeBytes bytes) mutable {
          self->arrived(group, std::move(of), std::move(bytes));
        },
        unneeded_.get_token());
  } catch (...) {  // no memory for the request
    give_up(group, *held);
    throw;
  }
}

void GroupCache::arrived(int64_t group, HeldPtr of, RangeBytes bytes) {
  MutexLock lock(mutex_);
  Held& held = *of;
  if (held.state != State::kComing) return;
  --coming_;
  if (bytes) {
    held.bytes = std::move(*bytes);
    held.state = State::kHere;
  } else {
    fail(group, held, std::move(bytes.error()));
  }
  of.reset();  // before decoding: a storage's thread must not destroy Python's memory
  changed_.notify_all();
}

void GroupCache::fail(int64_t group, Held& held, Error error) {
  const auto found = held_.find(group);
  const bool was_read = held.state == State::kDecoding;
  const bool is_current = found != held_.end() && found->second.get() == &held;
  if (is_current) counted_ -= std::exchange(held.counted, 0);
  held.state = State::kFailed;
  held.failure = std::move(error);
  held.unread = 0;
  held.awaited = false;
  const bool stays = was_read && held.failure->code->kind != ErrorKind::kStorage;
  if (is_current && !stays) held_.erase(found);
}

// Called by one thread at a time, without the lock.
void GroupCache::decode(int64_t group, Held& held) {
  try {
    end_decoding(group, held, groups_.decode(group, std::move(held.bytes)));
  } catch (...) {  // Ctrl-C, which is not this group's failure
    give_up(group, held);
    throw;
  }
}

// Called if an exception ends a request or the decoding: a thread that waits for the group then
// tries again.
void GroupCache::give_up(int64_t group, Held& held) {
  MutexLock lock(mutex_);
  if (held.state != State::kComing && held.state != State::kDecoding) return;
  if (held.state == State::kDecoding) decoding_ = false;
  held.state = State::kFailed;
  --coming_;
  const auto found = held_.find(group);
  if (found != held_.end() && found->second.get() == &held) {
    counted_ -= held.counted;
    held_.erase(found);  // the caller still holds a reference
  }
  changed_.notify_all();
}

void GroupCache::end_decoding(int64_t group, Held& held, Result<SourcePtr> decoded) {
  MutexLock lock(mutex_);
  decoding_ = false;
  --coming_;
  held.bytes.clear();
  held.awaited = false;
  if (decoded) {
    held.source = std::move(*decoded);
    held.state = State::kDecoded;
  } else {
    fail(group, held, std::move(decoded.error()));
  }
  changed_.notify_all();
}

GroupCache::Next GroupCache::next(int64_t group, HeldPtr& held, std::vector<HeldPtr>& gone) {
  if (held && held->failure) return Next::kFail;
  const auto found = held_.find(group);
  if (found == held_.end()) {
    const uint64_t cost = cost_of(group);
    make_room(cost, /*of_read_ones=*/false, gone);
    if (!has_room(cost) && coming_ > 0) return Next::kWait;
    std::erase(announced_, group);
    held = enter(group);
    held->awaited = true;
    return Next::kRequest;
  }
  held = found->second;
  held->last_used = ++clock_;
  if (held->state == State::kDecoded) return Next::kUse;
  if (held->state == State::kFailed) return Next::kFail;
  held->awaited = true;
  if (held->state != State::kHere || decoding_) return Next::kWait;
  held->state = State::kDecoding;
  decoding_ = true;
  ++coming_;
  return Next::kDecode;
}

// Counts a record of the group as read; announces the next groups if groups are read in sequence.
// Returns whether announced groups should be requested: there may be room for them now, or there
// are new ones.
bool GroupCache::use(int64_t group, Held& held) {
  const bool is_first = held.unread == size_of(group);
  --held.unread;
  if (is_first) {
    const bool in_turn = std::exchange(last_, group) == group - 1;
    const auto count = static_cast<int64_t>(groups_.groups.size());
    uint64_t bytes = 0;
    for (int64_t ahead = group + 1; async_ && in_turn && ahead < count && bytes < kAheadBytes;
         ++ahead) {
      bytes += cost_of(ahead);
      if (!held_.contains(ahead) && announced_.size() < kMaxAnnounced &&
          std::ranges::find(announced_, ahead) == announced_.end()) {
        announced_.push_back(ahead);
      }
    }
  }
  return !announced_.empty() && (is_first || held.unread == 0);
}

Result<void> GroupCache::wait(int64_t group) {
  if (ReadWait::is_over()) {
    const FileRange& range = groups_.groups[static_cast<size_t>(group)].ranges.front();
    return ReadWait::error(groups_.files->path(range.file), static_cast<int64_t>(range.offset));
  }
  ReadWait::wait(changed_, mutex_);
  return {};
}

Result<SourcePtr> GroupCache::take(int64_t group) {
  for (HeldPtr held;;) {
    Next step;
    bool requests_more = false;
    {
      const HeldPtr last = held;
      std::vector<HeldPtr> gone;  // like `last`, destroyed after the lock is released
      MutexLock lock(mutex_);
      step = next(group, held, gone);
      if (step == Next::kFail) return *held->failure;
      if (step == Next::kUse) requests_more = use(group, *held);
      if (step == Next::kWait) {
        if (Result<void> in_time = wait(group); !in_time) {
          if (held) held->awaited = false;  // other waiting threads set it again
          return std::move(in_time.error());
        }
      }
    }
    if (step == Next::kRequest) request(group, held);
    if (step == Next::kDecode) decode(group, *held);
    if (requests_more) request_announced();
    if (step == Next::kUse) return held->source;
  }
}

void GroupCache::announce(int64_t begin, int64_t end) {
  if (!async_) {
    for (int64_t group = begin; group < end; ++group) {
      for (const FileRange& range : groups_.groups[static_cast<size_t>(group)].ranges) {
        groups_.files->will_read(range.file, range.offset, range.bytes);
      }
    }
    return;
  }
  {
    MutexLock lock(mutex_);
    for (; begin < end && announced_.size() < kMaxAnnounced; ++begin) {
      // Runs of the same group may be announced one after the other.
      if (announced_.empty() || announced_.back() != begin) announced_.push_back(begin);
    }
  }
  request_announced();
}

void GroupCache::request_announced() {
  for (;;) {
    int64_t group = 0;
    HeldPtr held;
    {
      std::vector<HeldPtr> gone;  // let go after the lock
      MutexLock lock(mutex_);
      while (!announced_.empty() && held_.contains(announced_.front())) announced_.pop_front();
      if (announced_.empty()) return;
      group = announced_.front();
      const uint64_t cost = cost_of(group);
      make_room(cost, /*of_read_ones=*/true, gone);
      if (!has_room(cost)) return;
      announced_.pop_front();
      held = enter(group);
    }
    request(group, held);
  }
}

void GroupCache::close() {
  (void)unneeded_.request_stop();
  std::map<int64_t, HeldPtr> gone;  // let go after the lock
  MutexLock lock(mutex_);
  announced_.clear();
  gone.swap(held_);
  counted_ = 0;
}

}  // namespace headrace
