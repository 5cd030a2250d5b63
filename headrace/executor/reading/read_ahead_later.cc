// SPDX-License-Identifier: Apache-2.0
// Reading ahead of an asynchronous storage: many reads are submitted at once, and no thread
// waits for any. The worker that fetches a record reads it as ever, from the bytes that have
// arrived (staged_reads.h).
#include <algorithm>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <tuple>
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/executor/reading/read_ahead_parts.h"
#include "headrace/storage/read_deadline.h"

namespace headrace {
namespace {

// Neighbors become one read of so much at most. What lies between two is read as well, where it is
// no more than this and no more than the second one.
constexpr uint64_t kMostTogether = uint64_t{4} << 20, kNear = uint64_t{64} << 10;

bool is_whole(const FilePiece& piece) { return piece.bytes == FilePiece::kWhole; }

}  // namespace

// The reads of `needed`, a number that is waited for (else -1), and as many more as are worth
// to be under way. They are claimed several at a time, so that neighbors are found.
std::vector<ReadAhead::Neighbors> ReadAhead::claim_reads(int64_t needed) {
  std::vector<Neighbors> out;
  if (stopped_) return out;
  const int64_t depth = depth_.records();
  const auto ahead = [&]() REQUIRES_LOCK(mutex_) { return static_cast<int64_t>(entries_.size()); };
  if (next_ > needed && ahead() > depth - std::max<int64_t>(1, depth / 4)) return out;
  while (next_ < end() && (next_ <= needed || ahead() < depth)) {
    if (alone_.erase(next_) > 0) {
      ++next_;
    } else if (!claim_read(next_ == needed, out)) {
      break;  // earlier ones wait for room, too; the needed one is read alone then
    }
  }
  return out;
}

// Adds the reads of the next record to `out`. False where there is no room for it.
bool ReadAhead::claim_read(bool needed, std::vector<Neighbors>& out) {
  const int64_t index = index_of_(next_ - base_);
  std::vector<FilePiece> pieces;
  source_->pieces(index, wanted_, pieces);
  const size_t allowed = share_.allowance(), share_of_whole = std::min(share_.expected(), allowed);
  size_t bytes = 0;
  bool large = false;
  for (const FilePiece& piece : pieces) {
    bytes += is_whole(piece) ? share_of_whole : piece.bytes;
    large |= !is_whole(piece) && piece.bytes > share_bytes_ / 2;
  }
  large |= bytes > share_bytes_ / 2;
  if (large) pieces.clear();  // its worker reads it
  if (large) bytes = 0;
  // The other half is for what workers have, a giant among it.
  if (!needed && !(share_.fits(bytes) && share_.held + share_.dropped + bytes <= share_bytes_ / 2))
    return false;
  Entry entry{.ready = pieces.empty(),
              .index = index,
              .bytes = bytes,
              .missing = static_cast<int>(pieces.size()),
              .arriving = bytes};
  entry.pieces.reserve(pieces.size());  // so that nothing is allocated when they arrive
  for (FilePiece& piece : pieces) {
    const size_t reserved = is_whole(piece) ? share_of_whole : piece.bytes;
    out.push_back({.whole = piece,
                   .max_bytes = std::min(max_bytes_, allowed),
                   .parts = {{.number = next_, .piece = piece, .reserved = reserved}}});
  }
  entries_.emplace(next_++, std::move(entry));
  share_.held += bytes;
  return true;
}

// A record about to be fetched alone is not read ahead, even if that waits for room.
// Records in between may still be read ahead.
void ReadAhead::claim_alone(int64_t number) {
  if (number == next_) ++next_;
  if (number > next_) alone_.insert(number);
}

// Makes one read of several whose pieces lie side by side.
void ReadAhead::join_neighbors(std::vector<Neighbors>& reads) {
  const auto place = [](const Neighbors& read) {
    return std::tie(read.whole.path, read.whole.offset, read.parts.front().number);
  };
  std::ranges::sort(reads, {}, place);  // not a stable sort, which allocates
  const uint64_t most = std::min<uint64_t>(kMostTogether, share_bytes_ / 8);
  size_t last = 0;
  for (size_t i = 1; i < reads.size(); ++i) {
    FilePiece& piece = reads[last].whole;
    const FilePiece& next = reads[i].whole;
    const uint64_t end = piece.offset + piece.bytes, next_end = next.offset + next.bytes;
    const bool near = !is_whole(piece) && !is_whole(next) && next.path == piece.path &&
                      next.known == piece.known &&
                      next.offset <= end + std::min(kNear, next.bytes) &&
                      std::max(end, next_end) - piece.offset <= most;
    if (!near) {
      if (++last != i) reads[last] = std::move(reads[i]);
      continue;
    }
    if (const size_t gap = next.offset > end ? next.offset - end : 0; gap > 0) {
      Entry& entry = entries_.find(reads[i].parts.front().number)->second;
      reads[i].parts.front().reserved += gap;
      entry.bytes += gap;
      entry.arriving += gap;
      share_.held += gap;
    }
    piece.bytes = std::max(end, next_end) - piece.offset;
    std::ranges::move(reads[i].parts, std::back_inserter(reads[last].parts));
  }
  if (!reads.empty()) reads.resize(last + 1);
}

// Workers read these records themselves: memory for their reads was refused.
void ReadAhead::give_up_claims(int64_t begin, int64_t end) {
  MutexLock lock(mutex_);
  for (auto each = entries_.lower_bound(begin); each != entries_.end() && each->first < end;) {
    drop_one(each++, /*on_the_way=*/false);
  }
  changed_.notify_all();
}

void ReadAhead::submit(int64_t needed) {
  std::map<const Storage*, std::vector<LaterRead>> by_storage;
  int64_t first = 0, end = 0;
  try {
    std::vector<Neighbors> claimed;
    {
      MutexLock lock(mutex_);
      first = end = next_;
      try {
        claimed = claim_reads(needed);
        join_neighbors(claimed);
      } catch (...) {
        end = next_;
        throw;
      }
      end = next_;
    }
    const double begin = now();
    for (Neighbors& each : claimed) {
      LaterRead read{.piece = each.whole, .max_bytes = each.max_bytes};
      each.submitted = begin;
      auto neighbors = std::make_shared<const Neighbors>(std::move(each));
      read.done = [inbox = inbox_, neighbors](LaterRead done) {
        MutexLock lock(inbox->mutex);
        if (inbox->owner) inbox->owner->arrived(*neighbors, std::move(done));
      };
      by_storage[&storage_of(read.piece.path)].push_back(std::move(read));
    }
  } catch (const std::exception&) {
    return give_up_claims(first, end);
  }
  for (auto& [storage, reads] : by_storage) storage->submit(std::move(reads));
}

void ReadAhead::arrived(const Neighbors& neighbors, LaterRead read) {
  std::shared_ptr<const Buffer> memory;
  try {
    if (read.result) memory = std::make_shared<const Buffer>(std::move(read.bytes));
  } catch (const std::bad_alloc&) {
    // As if it had failed: workers read the records themselves.
  }
  bool anybody = false;
  MutexLock lock(mutex_);
  depth_.arrived(now() - neighbors.submitted);
  for (const Neighbors::Part& part : neighbors.parts) {
    const auto found = entries_.find(part.number);
    if (found == entries_.end()) {
      share_.dropped -= part.reserved;
      continue;
    }
    Entry& entry = found->second;
    entry.arriving -= part.reserved;
    if (memory && !entry.failed) {
      const bool whole = is_whole(part.piece);
      const auto bytes = whole ? memory->bytes()
                               : memory->bytes().subspan(part.piece.offset - neighbors.whole.offset,
                                                         part.piece.bytes);
      if (whole) entry.bytes += bytes.size() - part.reserved;
      if (whole) share_.held += bytes.size() - part.reserved;
      try {
        entry.pieces.push_back({.piece = part.piece, .bytes = bytes, .memory = memory});
      } catch (const std::bad_alloc&) {
        entry.failed = true;
      }
    }
    entry.failed |= !memory;
    entry.ready = --entry.missing == 0;
    anybody |= entry.ready;
  }
  if (anybody && wait_for_reads_ > 0) changed_.notify_all();
}

Error ReadAhead::too_late(int64_t index) const {
  std::vector<FilePiece> pieces;
  source_->pieces(index, wanted_, pieces);
  Error error = ReadDeadline::of_thread()->error(pieces.empty() ? "" : pieces.front().path, -1);
  error.where.record = index;
  return error;
}

size_t ReadAhead::fetch_later(int64_t number, int64_t index, RecordData& out, bool may_wait) {
  submit(number);
  Entry entry;
  const ReadDeadline deadline(record_timeout_);
  const double begin = now();
  {
    MutexLock lock(mutex_);
    depth_.taken(begin);
    auto found = entries_.find(number);
    while (found != entries_.end() && !found->second.ready) {
      if (record_timeout_ > 0 && deadline.is_over()) {
        drop_one(found);  // its answer is dropped
        room_changed();
        out.result = too_late(index);
        return 0;
      }
      ++wait_for_reads_;
      ReadDeadline::wait(changed_, mutex_);
      --wait_for_reads_;
      found = entries_.find(number);
    }
    if (found != entries_.end()) {
      entry = std::move(found->second);
      entries_.erase(found);
    }
    if (entry.failed || entry.index != index) entry.pieces.clear();
    if (entry.pieces.empty()) {
      share_.held -= entry.bytes;
      claim_alone(number);
    } else {
      share_.lent += counted(entry.bytes);
    }
  }
  if (entry.pieces.empty()) return fetch_alone(number, index, out, may_wait, now() - begin);
  const StagedReads staged(entry.pieces);
  const size_t reserved = counted(entry.bytes);
  try {
    read_alone(index, out, now() - begin);
  } catch (...) {
    MutexLock lock(mutex_);
    share_.held -= entry.bytes;
    share_.lent -= reserved;
    room_changed();
    throw;
  }
  const size_t bytes = bytes_of(out);
  MutexLock lock(mutex_);
  share_.held -= entry.bytes;
  share_.lent += counted(bytes);
  share_.lent -= reserved;
  share_.note(bytes);
  room_changed();
  return counted(bytes);
}

}  // namespace headrace
