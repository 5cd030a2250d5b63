// SPDX-License-Identifier: Apache-2.0
// Reading ahead from asynchronous storage: many reads are submitted at once, and no thread waits
// for any of them. The worker that fetches a record reads it as usual, from the bytes that have
// arrived (staged_reads.h).
#include <algorithm>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/executor/reading/read_ahead_parts.h"
#include "headrace/storage/read_deadline.h"

namespace headrace {
namespace {

// Maximum number of pieces that are claimed but not requested; each takes about 300 bytes.
constexpr int64_t kMaxPlanned = 1 << 16;
// Records whose pieces are prepared after one that has to wait for that: so few that their tables
// are still in memory when they are claimed.
constexpr int64_t kPreparedAhead = 16;

// The error of a wait that is over, for a record of a source.
Error too_late(const Source& source, const std::vector<bool>& wanted, int64_t index) {
  std::vector<FilePiece> pieces;
  source.pieces(index, wanted, pieces);
  Error error = ReadWait::error(pieces.empty() ? "" : pieces.front().path, -1);
  error.where.record = index;
  return error;
}

}  // namespace

// Note [Claims and requests]: a record is claimed long before it is requested: room in the budget
// is reserved, and the positions of its pieces are known. Once it is due, it is requested together
// with the claimed pieces in its neighborhood, however much later they are in the order. So the
// records of a block that the order mixes with other blocks are one request if there is room for
// all blocks being mixed; otherwise a request covers as much as fits.

// Claims the reads of `needed`, a record that is waited for (or -1), and as many more as are
// worthwhile. They are requested several at a time.
void ReadAhead::claim_reads(int64_t needed, std::vector<NeighborsPtr>& out) {
  if (stopped_) return;
  int64_t depth = std::max(depth_.records(), std::min(at_once_, ReadDepth::kMax));
  while (next_ < end() && (next_ <= needed || may_claim_on(depth))) {
    if (alone_.erase(next_) > 0) {
      ++next_;
    } else if (!claim_read(next_ == needed)) {
      break;  // earlier ones wait for room, too; the needed one is read alone then
    }
  }
  const int64_t claimed = std::ssize(entries_);
  int64_t ahead = claimed - (next_ - sent_);
  // A piece that is requested before its neighborhood is claimed leaves the rest to further
  // requests. If there is room for little more than the blocks being mixed, a quarter is requested
  // anyway.
  if (next_ < end()) depth = std::min(depth, std::max(claimed - spread_, claimed / 4));
  if (sent_ > needed && ahead > depth - std::max<int64_t>(1, depth / 4)) return;
  for (; sent_ < next_ && (sent_ <= needed || ahead < depth); ++sent_, ++ahead) {
    const auto entry = entries_.find(sent_);
    while (entry != entries_.end() && !entry->second.unsent.empty()) {
      send(entry->second.unsent.back(), out);
    }
  }
}

bool ReadAhead::may_claim_on(int64_t depth) const {
  if (std::ssize(entries_) < depth) return true;
  const int64_t planned = next_ - sent_;
  return have_neighbors_ && planned < std::min<int64_t>(kMaxPlanned, share_bytes_ / 4096) &&
         (planned < spread_ || planned_.reserved_bytes() < 2 * PlannedPieces::kMaxTogether);
}

// Claims the next record. False if there is no room for it.
bool ReadAhead::claim_read(bool needed) {
  const int64_t index = index_of_(next_ - base_);
  const RowPosition row = row_at(next_);
  if (!prepare(index, row, /*wait=*/false)) {
    prepare_further();
    if (!needed) return false;
  }
  std::vector<FilePiece> pieces;
  source_->pieces(index, wanted_, pieces);
  // Clips are seldom neighbors, and the tables of many more videos would be needed.
  const bool are_clips = clips_ && clips_->narrow(index, row, pieces);
  const size_t share_of_whole = std::min(share_.expected(), share_.allowance());
  const auto reserved_for = [&](const FilePiece& piece) {
    return is_whole(piece) ? share_of_whole : piece.bytes;
  };
  size_t bytes = 0;
  bool large = false;
  for (const FilePiece& piece : pieces) {
    bytes += reserved_for(piece);
    large |= reserved_for(piece) > share_bytes_ / 2;
  }
  large |= bytes > share_bytes_ / 2;
  if (large) pieces.clear();  // its worker reads it
  if (large) bytes = 0;
  // The other half is for the records of workers, which may include a huge one.
  if (!needed && !(share_.fits(bytes) && share_.held + share_.dropped + bytes <= share_bytes_ / 2))
    return false;
  have_neighbors_ = !pieces.empty() && !is_whole(pieces.front()) && !are_clips;
  Entry entry{.index = index, .bytes = bytes, .missing = static_cast<int>(pieces.size())};
  entry.pieces.reserve(pieces.size());  // so that nothing is allocated when they arrive
  entry.unsent.reserve(pieces.size());
  entry.sent.reserve(pieces.size());
  const auto claimed = entries_.emplace(next_, std::move(entry)).first;
  share_.held += bytes;
  try {
    for (FilePiece& piece : pieces) {
      const size_t reserved = reserved_for(piece);
      plan(std::move(piece), reserved, index, claimed->second);
    }
  } catch (...) {
    drop_one(claimed);
    throw;
  }
  claimed->second.ready = claimed->second.missing == 0;
  ++next_;
  return true;
}

// Plans the request of a piece of the next record, unless the piece is there or under way.
void ReadAhead::plan(FilePiece piece, size_t reserved, int64_t index, Entry& entry) {
  if (piece.shared) {
    SharedPieces::Found found = shared_.find(piece, next_);
    if (found.memory) {
      const auto bytes = found.memory->bytes();
      entry.pieces.push_back(
          {.piece = std::move(piece), .bytes = bytes, .memory = std::move(found.memory)});
      --entry.missing;
    }
    if (!found.is_new) return;
  }
  std::optional<PlannedPieces::Iterator> planned;
  try {
    planned = planned_.add({.piece = piece.shared ? FilePiece(piece) : std::move(piece),
                            .reserved = reserved,
                            .number = next_,
                            .index = index});
  } catch (...) {
    if (piece.shared) (void)shared_.arrived(piece, nullptr);  // it was new, so no record waits
    throw;
  }
  if (planned) {
    entry.unsent.push_back(*planned);
  } else {
    if (piece.shared) (void)shared_.arrived(piece, nullptr);  // or others would wait for it
    --entry.missing;
    entry.bytes -= reserved;
    share_.held -= reserved;
  }
}

// The next record waits for tables of its files: those of the following records are read at the
// same time.
void ReadAhead::prepare_further() {
  const int64_t last = std::min(end(), next_ + kPreparedAhead);
  for (int64_t number = next_ + 1; number < last; ++number) {
    (void)prepare(index_of_(number - base_), row_at(number), /*wait=*/false);
  }
}

// Source::prepare_pieces(), also for the tables of separate video files.
bool ReadAhead::prepare(int64_t index, RowPosition row, bool wait) const {
  const bool has_tables = !clips_ || clips_->prepare(index, row, wait);
  return source_->prepare_pieces(index, wanted_, wait) && has_tables;
}

// Requests a piece together with its claimed neighborhood.
void ReadAhead::send(PlannedPieces::Iterator piece, std::vector<NeighborsPtr>& out) {
  const auto [begin, end] = planned_.request_around(piece);
  const auto made = std::make_shared<Neighbors>();
  Neighbors& read = *made;
  read.whole = begin->second.piece;
  read.max_bytes = std::min(max_bytes_, share_.allowance());
  read.parts.reserve(static_cast<size_t>(std::distance(begin, end)));
  out.push_back(made);  // the last call that may throw
  for (auto each = begin; each != end;) {
    FilePiece& bytes = each->second.piece;
    const size_t reserved = each->second.reserved;
    if (!is_whole(bytes)) {
      read.whole.bytes = std::max(read.whole.bytes, bytes.offset + bytes.bytes - read.whole.offset);
    }
    Entry& entry = entries_.find(each->second.number)->second;
    entry.arriving += reserved;
    std::erase(entry.unsent, each);
    ++read.needed;
    // A shared piece has other records, which may need it when this one is dropped.
    if (!bytes.shared) entry.sent.push_back(made);
    read.parts.push_back({.number = each->second.number,
                          .piece = std::move(bytes),
                          .reserved = reserved,
                          .shared = each->second.shared});
    each = planned_.erase(each);
  }
  ++counts_.requests;
  if (!is_whole(read.whole)) counts_.bytes += read.whole.bytes;
}

// A record about to be fetched alone is not read ahead, even if that waits for room.
// Records in between may still be read ahead.
void ReadAhead::claim_alone(int64_t number) {
  if (number == next_) ++next_;
  if (number > next_) alone_.insert(number);
}

// Several parts get separate memory each, and the gaps between them need none. A single part, whose
// size may be unknown, is delivered unchanged.
ScatterRead ReadAhead::read_of(const NeighborsPtr& neighbors, std::shared_ptr<Inbox> inbox) {
  ScatterRead out{.read = {.piece = neighbors->whole,
                           .max_bytes = neighbors->max_bytes,
                           .unneeded = neighbors->unneeded.get_token()},
                  .places = {}};
  neighbors->on_closing.emplace(
      inbox->token(), [source = neighbors->unneeded]() mutable { (void)source.request_stop(); });
  uint64_t at = neighbors->whole.offset;
  Neighbors::Part* before = nullptr;
  for (Neighbors::Part& part : neighbors->parts) {
    if (neighbors->parts.size() == 1) break;
    if (before && part.piece.offset < at) {  // drawn twice
      part.memory = before->memory;
      part.shared = before->shared = true;
      continue;
    }
    before = &part;
    part.memory = std::make_shared<Buffer>(part.piece.bytes);
    if (part.piece.offset > at) out.places.add(nullptr, part.piece.offset - at);
    out.places.add(part.memory->data(), part.piece.bytes);
    at = part.piece.offset + part.piece.bytes;
  }
  out.read.done = [inbox = std::move(inbox), neighbors](AsyncRead done) {
    MutexLock lock(inbox->mutex);
    if (inbox->owner) inbox->owner->arrived(*neighbors, &done);
  };
  return out;
}

// If an allocation fails, workers read the records themselves.
void ReadAhead::submit(int64_t needed) {
  std::vector<NeighborsPtr> claimed;
  {
    MutexLock lock(mutex_);
    try {
      claim_reads(needed, claimed);
    } catch (const std::exception&) {
      // Requests nothing beyond the earlier claims.
    }
  }
  const double begin = now();
  std::map<const Storage*, std::vector<AsyncRead>> whole;
  std::map<const AsyncStorage*, std::vector<ScatterRead>> placed;
  for (const NeighborsPtr& each : claimed) {
    each->submitted = begin;
    try {
      const Storage& storage = storage_of(each->whole.path);
      ScatterRead read = read_of(each, inbox_);
      if (read.places.empty()) {
        whole[&storage].push_back(std::move(read.read));
      } else {  // pieces are on asynchronous storage
        placed[&dynamic_cast<const AsyncStorage&>(storage)].push_back(std::move(read));
      }
    } catch (const std::exception&) {
      arrived(*each, nullptr);
    }
  }
  for (auto& [storage, reads] : placed) storage->submit_scattered(std::move(reads));
  for (auto& [storage, reads] : whole) storage->submit(std::move(reads));
}

// `read`: null if it could not be submitted. Nothing may throw here, or a worker would wait
// forever.
void ReadAhead::arrived(Neighbors& neighbors, AsyncRead* read) {
  const bool good = read && read->result.has_value();
  bool anybody = false;
  MutexLock lock(mutex_);
  if (good) depth_.arrived(now() - neighbors.submitted);  // others may have ended early
  for (Neighbors::Part& part : neighbors.parts) {
    try {
      if (good && !part.memory) part.memory = std::make_shared<Buffer>(std::move(read->bytes));
    } catch (const std::bad_alloc&) {
      // Handled like a failed read.
    }
    if (part.piece.shared) anybody |= arrived_for_others(part.piece, good ? part.memory : nullptr);
    const auto found = entries_.find(part.number);
    if (found == entries_.end()) {
      share_.dropped -= part.reserved;
      continue;
    }
    Entry& entry = found->second;
    std::erase_if(entry.sent, [&](const NeighborsPtr& each) { return each.get() == &neighbors; });
    entry.arriving -= part.reserved;
    entry.failed |= !good || !part.memory;
    if (!entry.failed) {
      const auto bytes = part.memory->bytes();
      const bool alone = !part.shared && !part.piece.shared;
      if (is_whole(part.piece)) {
        counts_.bytes += bytes.size();
        entry.bytes += bytes.size() - part.reserved;
        share_.held += bytes.size() - part.reserved;
      }
      entry.pieces.push_back({.piece = std::move(part.piece),
                              .bytes = bytes,
                              .memory = std::move(part.memory),
                              .alone = alone});
    }
    entry.ready = --entry.missing == 0;
    anybody |= entry.ready;
  }
  if (anybody && wait_for_reads_ > 0) changed_.notify_all();
}

// Gives a shared piece to the records that wait for it; null: it could not be read. Returns whether
// one of them is complete.
bool ReadAhead::arrived_for_others(const FilePiece& piece, const std::shared_ptr<Buffer>& memory) {
  bool anybody = false;
  for (const int64_t number : shared_.arrived(piece, memory)) {
    const auto found = entries_.find(number);
    if (found == entries_.end()) continue;
    Entry& entry = found->second;
    try {
      if (memory) {
        entry.pieces.push_back({.piece = piece, .bytes = memory->bytes(), .memory = memory});
      }
      entry.failed |= !memory;
    } catch (const std::bad_alloc&) {
      entry.failed = true;
    }
    entry.ready = --entry.missing == 0;
    anybody |= entry.ready;
  }
  return anybody;
}

size_t ReadAhead::fetch_async(int64_t number, int64_t index, RecordData& out, bool may_wait,
                              RowPosition row) {
  const ReadDeadline deadline(record_timeout_);
  const double begin = now();
  (void)prepare(index, row, /*wait=*/true);
  submit(number);
  Entry entry;
  {
    MutexLock lock(mutex_);
    depth_.taken(begin);
    auto found = entries_.find(number);
    while (found != entries_.end() && !found->second.ready && found->second.unsent.empty()) {
      if (ReadWait::is_over()) {
        drop_one(found);  // its result will be discarded
        room_changed();
        out.result = too_late(*source_, wanted_, index);
        return 0;
      }
      ++wait_for_reads_;
      ReadWait::wait(changed_, mutex_);
      --wait_for_reads_;
      found = entries_.find(number);
    }
    if (found != entries_.end() && !found->second.unsent.empty()) {  // an allocation failed
      drop_one(found);
    } else if (found != entries_.end()) {
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
  if (entry.pieces.empty()) return fetch_alone(number, index, out, may_wait, now() - begin, row);
  const StagedReads staged(entry.pieces);
  const size_t reserved = counted(entry.bytes);
  try {
    read_alone(index, out, now() - begin, row);
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
