// SPDX-License-Identifier: Apache-2.0
// Groups pieces, sorted by position, into requests: a run of neighboring pieces is divided from its
// beginning into requests of the maximum size. Linear: pieces that begin a request are marked, so
// that later calls need not search beyond them, and the returned pieces are requested and removed.
#pragma once

#include <iterator>
#include <utility>

namespace headrace {

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

}  // namespace headrace
