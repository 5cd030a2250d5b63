// SPDX-License-Identifier: Apache-2.0
// Promise: a piece that is due is requested together with its neighbors in the file, within blocks,
// and nothing else delays the first batch.
#include "headrace/executor/reading/planned_pieces.h"

#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

namespace headrace {
namespace {

constexpr size_t kAmple = size_t{256} << 20;
const std::string kFar = "https://host.invalid/shard.tar";

FilePiece piece_at(uint64_t offset, uint64_t bytes, const std::string& path = kFar) {
  FilePiece out;
  out.path = path;
  out.offset = offset;
  out.bytes = bytes;
  return out;
}

// Records of 1,000 bytes, one after the other; their numbers are in reverse.
std::vector<PlannedPieces::Iterator> plan_records(PlannedPieces& pieces, int64_t count) {
  std::vector<PlannedPieces::Iterator> out;
  for (int64_t index = 0; index < count; ++index) {
    out.push_back(*pieces.add({.piece = piece_at(static_cast<uint64_t>(index) * 1000, 1000),
                               .reserved = 1000,
                               .number = count - 1 - index,
                               .index = index}));
  }
  return out;
}

// Record of the first piece, and how many there are.
std::pair<int64_t, int64_t> request_of(PlannedPieces& pieces, PlannedPieces::Iterator piece) {
  const auto [begin, end] = pieces.request_around(piece);
  return {begin->second.index, std::distance(begin, end)};
}

TEST(PlannedPieces, NeighborsAreOneRequest) {
  PlannedPieces pieces(kAmple);
  const auto records = plan_records(pieces, 10);
  EXPECT_EQ(request_of(pieces, records[7]), std::pair(int64_t{0}, int64_t{10}));
}

TEST(PlannedPieces, ARequestEndsWhereItsBlockDoes) {
  PlannedPieces pieces(kAmple);
  EXPECT_FALSE(pieces.is_divided());
  pieces.divide_at({4, 8, 10});
  EXPECT_TRUE(pieces.is_divided());
  const auto records = plan_records(pieces, 10);
  EXPECT_EQ(request_of(pieces, records[3]), std::pair(int64_t{0}, int64_t{4}));
  EXPECT_EQ(request_of(pieces, records[5]), std::pair(int64_t{4}, int64_t{4}));
  EXPECT_EQ(request_of(pieces, records[8]).first, 8);
}

TEST(PlannedPieces, RequestsOfTheFirstBatchContainNoOtherRecords) {
  PlannedPieces pieces(kAmple);
  pieces.hurry(3);  // the records 7, 8 and 9
  const auto records = plan_records(pieces, 10);
  EXPECT_EQ(request_of(pieces, records[8]), std::pair(int64_t{7}, int64_t{3}));
}

TEST(PlannedPieces, NoRequestExceedsItsPartOfTheMemoryShare) {
  PlannedPieces pieces(/*share_bytes=*/8 * 2500);
  const auto records = plan_records(pieces, 10);
  EXPECT_EQ(request_of(pieces, records[0]), std::pair(int64_t{0}, int64_t{2}));
}

TEST(PlannedPieces, GapsWholeFilesAndLocalFilesSeparateRequests) {
  PlannedPieces pieces(kAmple);
  const auto first = *pieces.add({.piece = piece_at(0, 1000), .number = 0});
  const auto near = *pieces.add({.piece = piece_at(1500, 1000), .number = 1, .index = 1});
  const auto far = *pieces.add({.piece = piece_at(1 << 20, 1000), .number = 2, .index = 2});
  const auto whole =
      *pieces.add({.piece = piece_at(0, FilePiece::kWhole, kFar + "2"), .number = 3, .index = 3});
  const auto local = *pieces.add({.piece = piece_at(0, 10, "/tmp/a"), .number = 4, .index = 4});
  pieces.add({.piece = piece_at(10, 10, "/tmp/a"), .number = 5, .index = 5});
  EXPECT_EQ(request_of(pieces, near), std::pair(int64_t{0}, int64_t{2}));
  EXPECT_EQ(request_of(pieces, first), std::pair(int64_t{0}, int64_t{2}));
  EXPECT_EQ(request_of(pieces, far), std::pair(int64_t{2}, int64_t{1}));
  EXPECT_EQ(request_of(pieces, whole), std::pair(int64_t{3}, int64_t{1}));
  EXPECT_EQ(request_of(pieces, local), std::pair(int64_t{4}, int64_t{1}));
}

TEST(PlannedPieces, TheSameBytesForTwoFieldsArePlannedOnce) {
  PlannedPieces pieces(kAmple);
  const auto one = pieces.add({.piece = piece_at(0, 1000), .reserved = 1000});
  EXPECT_FALSE(pieces.add({.piece = piece_at(0, 1000), .reserved = 1000}));
  EXPECT_TRUE((*one)->second.shared);
  EXPECT_EQ(pieces.reserved_bytes(), size_t{1000});
  pieces.erase(*one);
  EXPECT_EQ(pieces.reserved_bytes(), size_t{0});
}

}  // namespace
}  // namespace headrace
