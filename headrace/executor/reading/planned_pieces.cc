// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/reading/planned_pieces.h"

#include <algorithm>
#include <iterator>

#include "headrace/storage/async_storage.h"

namespace headrace {
namespace {

// The gap between two neighboring pieces is read as well if it is not larger than this, nor than
// the second piece.
constexpr uint64_t kNear = uint64_t{64} << 10;
constexpr uint64_t kFirstTogether = uint64_t{1} << 20;

}  // namespace

std::optional<PlannedPieces::Iterator> PlannedPieces::add(Planned piece) {
  Place place{.path = piece.piece.path,
              .offset = piece.piece.offset,
              .number = piece.number,
              .bytes = piece.piece.bytes};
  const size_t reserved = piece.reserved;
  const auto [planned, is_new] = pieces_.try_emplace(std::move(place), std::move(piece));
  if (!is_new) {
    planned->second.shared = true;
    return std::nullopt;
  }
  reserved_bytes_ += reserved;
  return planned;
}

PlannedPieces::Iterator PlannedPieces::erase(Iterator piece) {
  reserved_bytes_ -= piece->second.reserved;
  return pieces_.erase(piece);
}

// The range of records in a record's block. The next block may be claimed only in part so far, so
// it becomes a separate request later.
std::pair<int64_t, int64_t> PlannedPieces::block_of(int64_t index) const {
  const auto end = std::ranges::upper_bound(block_ends_, index);
  if (end == block_ends_.end()) return {0, INT64_MAX};
  return {end == block_ends_.begin() ? 0 : *std::prev(end), *end};
}

std::pair<PlannedPieces::Iterator, PlannedPieces::Iterator> PlannedPieces::request_around(
    Iterator piece) {
  const Planned& due = piece->second;
  // A local file among remote ones is not on storage that reads several ranges at once.
  if (is_whole(due.piece) || !is_async(due.piece.path)) return {piece, std::next(piece)};
  const bool first = due.number < first_end_;
  const uint64_t most = std::min<uint64_t>(first ? kFirstTogether : kMaxTogether, share_bytes_ / 8);
  const auto block = block_of(due.index);
  const auto may_join = [&](const Planned& each) {
    return each.index >= block.first && each.index < block.second &&
           (!first || each.number < first_end_);
  };
  using Entry = std::map<Place, Planned>::value_type;
  const auto are_near = [&](const Entry& a, const Entry& b) {
    const FilePiece &one = a.second.piece, &next = b.second.piece;
    if (is_whole(next) || next.path != one.path || next.known != one.known) return false;
    if (!may_join(a.second) || !may_join(b.second)) return false;
    const uint64_t after = one.offset + one.bytes;
    const bool same = next.offset == one.offset && next.bytes == one.bytes;  // drawn twice
    return same || (next.offset >= after && next.offset - after <= std::min(kNear, next.bytes));
  };
  const auto fits = [&](const Entry& begin, const Entry& end) {
    return end.first.offset + end.second.piece.bytes - begin.first.offset <= most;
  };
  const auto mark = [](Entry& each) -> bool& { return each.second.begins_request; };
  return neighborhood_of(pieces_, piece, are_near, fits, mark);
}

}  // namespace headrace
