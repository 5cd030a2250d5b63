// SPDX-License-Identifier: Apache-2.0
// Pieces of files that are claimed but not requested yet, by position, and the requests made from
// them: a piece that is due is requested together with its neighbors. Not thread-safe; ReadAhead
// calls it under its mutex.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

inline bool is_whole(const FilePiece& piece) { return piece.bytes == FilePiece::kWhole; }

// Groups pieces, sorted by position, into requests: a run of neighboring pieces is divided from its
// beginning into requests of the maximum size. Linear: pieces that begin a request are marked, so
// that later calls need not search beyond them, and the returned pieces are requested and removed.
//
// The request around `piece`: [first, second). `near(a, b)`: whether b, directly after a, belongs
// to its run. `fits(a, b)`: whether a request from a's start may extend to b's end. `mark(a)`: a
// reference to a bool stored with a, initially false, for use by this function alone.
template <class Map, class Near, class Fits, class Mark>
std::pair<typename Map::iterator, typename Map::iterator> neighborhood_of(
    Map& pieces, typename Map::iterator piece, const Near& near, const Fits& fits,
    const Mark& mark) {
  auto begin = piece;
  while (!mark(*begin) && begin != pieces.begin() && near(*std::prev(begin), *begin)) --begin;
  while (true) {
    bool has_piece = false;
    auto end = begin;
    do {
      has_piece |= end == piece;
      ++end;
    } while (end != pieces.end() && near(*std::prev(end), *end) && fits(*begin, *end));
    if (has_piece) return {begin, end};
    begin = end;
    mark(*begin) = true;
  }
}

class PlannedPieces {
 public:
  struct Planned {
    FilePiece piece;
    size_t reserved = 0;          // bytes kept free for it
    int64_t number = 0;           // its record's number, over all streams
    int64_t index = 0;            // its record's index in the source
    bool shared = false;          // two fields of the record have the same bytes
    bool begins_request = false;  // neighborhood_of()
  };
  struct Place {
    std::string path;
    uint64_t offset;
    int64_t number;
    uint64_t bytes;
    auto operator<=>(const Place&) const = default;
  };
  using Iterator = std::map<Place, Planned>::iterator;
  // No request is larger than this; larger ones would not cost less per byte.
  static constexpr uint64_t kMaxTogether = uint64_t{8} << 20;

  // share_bytes: memory for all bytes that are read ahead.
  explicit PlannedPieces(size_t share_bytes) : share_bytes_(share_bytes) {}

  // block_ends: Source::block_ends() if the order mixes records of several blocks; requests then
  // end at block boundaries. Empty: it does not.
  void divide_at(std::vector<int64_t> block_ends) { block_ends_ = std::move(block_ends); }
  bool is_divided() const { return !block_ends_.empty(); }
  // Requests for numbers below this are small, and contain no later records: a batch waits for all
  // of them.
  void hurry(int64_t first_end) { first_end_ = first_end; }

  // Nothing if its record has planned the same bytes: they are read once, for both of its fields.
  std::optional<Iterator> add(Planned piece);
  // The pieces of the request that contains this one: [first, second).
  std::pair<Iterator, Iterator> request_around(Iterator piece);
  Iterator erase(Iterator piece);

  size_t reserved_bytes() const { return reserved_bytes_; }

 private:
  std::pair<int64_t, int64_t> block_of(int64_t index) const;

  const size_t share_bytes_;
  std::map<Place, Planned> pieces_;
  size_t reserved_bytes_ = 0;
  std::vector<int64_t> block_ends_;
  int64_t first_end_ = 0;
};

}  // namespace headrace
