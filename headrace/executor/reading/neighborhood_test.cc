// SPDX-License-Identifier: Apache-2.0
// Promise: neighbors are requested with as few requests as their bytes need, and finding them takes
// time proportional to their number, in whatever order they are due.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "headrace/executor/reading/planned_pieces.h"

namespace headrace {
namespace {

struct Piece {
  bool marked = false;
};
using Pieces = std::map<int64_t, Piece>;

struct RequestedRange {
  int64_t requests = 0, looks = 0;
};

// Takes pieces of 1 byte away in the order in which they are due, by requests of `most` bytes.
RequestedRange ask_for(Pieces pieces, const std::vector<int64_t>& due, int64_t most) {
  RequestedRange out;
  for (const int64_t place : due) {
    const auto piece = pieces.find(place);
    if (piece == pieces.end()) continue;
    const auto [begin, end] = neighborhood_of(
        pieces, piece,
        [&](const auto& a, const auto& b) {
          ++out.looks;
          return b.first == a.first + 1;
        },
        [&](const auto& a, const auto& b) { return b.first + 1 - a.first <= most; },
        [](auto& each) -> bool& { return each.second.marked; });
    EXPECT_LE(begin->first, place);
    EXPECT_GE(std::prev(end)->first, place);
    EXPECT_LE(std::distance(begin, end), most);
    pieces.erase(begin, end);
    ++out.requests;
  }
  EXPECT_TRUE(pieces.empty());
  return out;
}

Pieces run_of(int64_t count) {
  Pieces out;
  for (int64_t i = 0; i < count; ++i) out[i];
  return out;
}

std::vector<int64_t> numbers_to(int64_t count) {
  std::vector<int64_t> out(static_cast<size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

TEST(Neighborhood, ARunOfNeighborsTakesAsFewRequestsAsItsBytesAllow) {
  std::vector<int64_t> due = numbers_to(1000);
  EXPECT_EQ(ask_for(run_of(1000), due, 64).requests, 16);
  std::ranges::reverse(due);
  EXPECT_EQ(ask_for(run_of(1000), due, 64).requests, 16);
  std::ranges::shuffle(due, std::mt19937(7));
  EXPECT_EQ(ask_for(run_of(1000), due, 64).requests, 16);
}

TEST(Neighborhood, TwoSeparateRunsTakeTwoRequests) {
  Pieces pieces = run_of(10);
  pieces.erase(4);
  EXPECT_EQ(ask_for(pieces, {9, 0, 1, 2, 3, 5, 6, 7, 8}, 64).requests, 2);
}

TEST(Neighborhood, WorkIsLinearInThePieces) {
  for (const int64_t count : {10'000, 40'000}) {
    std::vector<int64_t> due = numbers_to(count);
    std::ranges::reverse(due);  // each lies at the end of what is left
    EXPECT_LE(ask_for(run_of(count), due, 16).looks, 5 * count);
    std::ranges::shuffle(due, std::mt19937(3));
    EXPECT_LE(ask_for(run_of(count), due, 16).looks, 5 * count);
  }
}

}  // namespace
}  // namespace headrace
