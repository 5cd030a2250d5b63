// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/reading/shared_pieces.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace headrace {
namespace {

using Numbers = std::vector<int64_t>;

FilePiece shared_piece(const std::string& path, uint64_t offset) {
  return {.path = path, .offset = offset, .bytes = 10, .shared = true};
}

TEST(SharedPiecesOfRecords, AreRequestedByTheFirstAndGivenToAll) {
  SharedPieces pieces;
  const FilePiece piece = shared_piece("a", 5);
  EXPECT_TRUE(pieces.find(piece, 1).is_new);
  EXPECT_FALSE(pieces.find(piece, 2).is_new);
  EXPECT_FALSE(pieces.find(piece, 3).memory);
  EXPECT_TRUE(pieces.find(shared_piece("b", 5), 4).is_new);
  EXPECT_TRUE(pieces.find(shared_piece("a", 6), 4).is_new);
  auto memory = std::make_shared<Buffer>(10);
  EXPECT_EQ(pieces.arrived(piece, memory), (Numbers{2, 3}));
  const SharedPieces::Found found = pieces.find(piece, 5);
  EXPECT_FALSE(found.is_new);
  EXPECT_EQ(found.memory, memory);
}

TEST(SharedPiecesOfRecords, AreNotSharedByTwoVersionsOfAFile) {
  SharedPieces pieces;
  FilePiece old = shared_piece("a", 5), now = shared_piece("a", 5);
  old.known = FileIdentity{.inode = 1, .size = 100};
  now.known = FileIdentity{.inode = 2, .size = 100};
  EXPECT_TRUE(pieces.find(old, 1).is_new);
  EXPECT_TRUE(pieces.find(now, 2).is_new);
  const auto memory = std::make_shared<Buffer>(10);
  EXPECT_EQ(pieces.arrived(old, memory), Numbers());
  EXPECT_EQ(pieces.find(old, 3).memory, memory);
  EXPECT_FALSE(pieces.find(now, 3).memory) << "it is still under way";
}

TEST(SharedPiecesOfRecords, AreRequestedAgainOnceNobodyHasThem) {
  SharedPieces pieces;
  const FilePiece piece = shared_piece("a", 5);
  EXPECT_TRUE(pieces.find(piece, 1).is_new);
  EXPECT_EQ(pieces.arrived(piece, std::make_shared<Buffer>(10)), Numbers());
  EXPECT_TRUE(pieces.find(piece, 2).is_new) << "the memory was freed";
  EXPECT_FALSE(pieces.find(piece, 3).is_new) << "and is under way again";
  EXPECT_EQ(pieces.arrived(piece, nullptr), (Numbers{3}));
  EXPECT_TRUE(pieces.find(piece, 3).is_new) << "after a failure";
}

TEST(SharedPiecesOfRecords, TakeNoMemoryWhenTheyAreGone) {
  SharedPieces pieces;
  const auto kept = std::make_shared<Buffer>(10);
  for (uint64_t i = 0; i < 100'000; ++i) {
    const FilePiece piece = shared_piece("a", 10 * i);
    EXPECT_TRUE(pieces.find(piece, 1).is_new);
    (void)pieces.arrived(piece, i == 7 ? kept : std::make_shared<Buffer>(10));
  }
  EXPECT_LE(pieces.size(), 64u);
  EXPECT_EQ(pieces.find(shared_piece("a", 70), 2).memory, kept);
}

}  // namespace
}  // namespace headrace
