// SPDX-License-Identifier: Apache-2.0
// Expected rows are packed by hand.
#include "headrace/sources/packed/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

namespace headrace {
namespace {

using Row = std::vector<std::tuple<int, int, int>>;  // document, begin, count

std::vector<Row> rows_of(const DocumentRows& packing) {
  std::vector<Row> out;
  size_t at = 0;
  for (const int64_t end : packing.row_ends) {
    Row& row = out.emplace_back();
    for (; at < static_cast<size_t>(end); ++at) {
      const PackedPiece& piece = packing.pieces[at];
      row.emplace_back(piece.document, piece.begin, piece.count);
    }
  }
  return out;
}

std::vector<Row> packed_rows(const std::vector<int64_t>& lengths, PackMethod method,
                             LongDocument too_long = LongDocument::kSplit) {
  return rows_of(pack_documents(lengths, {.length = 10, .method = method, .too_long = too_long}));
}

TEST(DocumentRows, EachMethodEqualsAHandWrittenResult) {
  const std::vector<int64_t> lengths{6, 7, 3, 4, 2};
  EXPECT_EQ(packed_rows(lengths, PackMethod::kSequential),
            (std::vector<Row>{{{0, 0, 6}}, {{1, 0, 7}, {2, 0, 3}}, {{3, 0, 4}, {4, 0, 2}}}));
  EXPECT_EQ(packed_rows(lengths, PackMethod::kFirstFit),
            (std::vector<Row>{{{0, 0, 6}, {2, 0, 3}}, {{1, 0, 7}, {4, 0, 2}}, {{3, 0, 4}}}));
  EXPECT_EQ(packed_rows(lengths, PackMethod::kBestFit),
            (std::vector<Row>{{{1, 0, 7}, {2, 0, 3}}, {{0, 0, 6}, {3, 0, 4}}, {{4, 0, 2}}}));
  EXPECT_EQ(
      packed_rows(lengths, PackMethod::kSplit),
      (std::vector<Row>{{{0, 0, 6}, {1, 0, 4}}, {{1, 4, 3}, {2, 0, 3}, {3, 0, 4}}, {{4, 0, 2}}}));
}

TEST(DocumentRows, LongDocumentsAreSplitTruncatedOrDropped) {
  const std::vector<int64_t> lengths{23, 4};
  EXPECT_EQ(packed_rows(lengths, PackMethod::kFirstFit),
            (std::vector<Row>{{{0, 0, 10}}, {{0, 10, 10}}, {{0, 20, 3}, {1, 0, 4}}}));
  EXPECT_EQ(packed_rows(lengths, PackMethod::kFirstFit, LongDocument::kTruncate),
            (std::vector<Row>{{{0, 0, 10}}, {{1, 0, 4}}}));
  EXPECT_EQ(packed_rows(lengths, PackMethod::kFirstFit, LongDocument::kDrop),
            (std::vector<Row>{{{1, 0, 4}}}));
  const DocumentRows counted =
      pack_documents(lengths, {.length = 10, .too_long = LongDocument::kTruncate});
  EXPECT_EQ(counted.tokens, 14);
  EXPECT_EQ(counted.tokens_left_out, 13);
  EXPECT_EQ(counted.cut, 1);
}

TEST(DocumentRows, AreEmptyIfThereIsNothingToPack) {
  for (const PackMethod method :
       {PackMethod::kBestFit, PackMethod::kFirstFit, PackMethod::kSequential, PackMethod::kSplit}) {
    const DocumentRows packing = pack_documents({0, 0}, {.length = 10, .method = method});
    EXPECT_EQ(packing.rows(), 0);
    EXPECT_EQ(packing.dropped, 2);
  }
}

// A table of its length would take 16 GiB.
TEST(Packing, AHugeRowLengthWithFewTokensGivesOneRow) {
  const DocumentRows packing = pack_documents({5, 0, 3}, {.length = 2147483646});
  ASSERT_EQ(packing.rows(), 1);
  EXPECT_EQ(packing.tokens, 8);
  EXPECT_EQ(packing.max_pieces, 3);
}

// Compared with a search of all rows.
TEST(DocumentRows, BestFitTakesTheFullestRow) {
  for (const int64_t length : {1, 63, 64, 65, 4095, 5000}) {
    std::vector<int64_t> lengths, rooms;
    for (int64_t i = 1; i <= 700; ++i) lengths.push_back(i * i * 7919 % length + 1);
    const DocumentRows packing = pack_documents(lengths, {.length = length});
    std::sort(lengths.rbegin(), lengths.rend());
    for (const int64_t count : lengths) {
      auto best = rooms.end();
      for (auto room = rooms.begin(); room != rooms.end(); ++room) {
        if (*room >= count && (best == rooms.end() || *room < *best)) best = room;
      }
      if (best == rooms.end()) best = rooms.insert(rooms.end(), length);
      *best -= count;
    }
    EXPECT_EQ(packing.rows(), std::ssize(rooms)) << length;
  }
}

TEST(DocumentRows, FieldsOfARowFollowItsPieces) {
  const std::vector<PackedPiece> pieces{{.begin = 0, .document = 4, .continues = 0, .count = 3},
                                        {.begin = 5, .document = 6, .continues = 1, .count = 2}};
  std::vector<int64_t> positions(6);
  write_position_ids(pieces, positions);
  EXPECT_EQ(positions, (std::vector<int64_t>{0, 1, 2, 0, 1, 0}));
  std::vector<int32_t> segments(6), bounds(5);
  write_segment_ids(pieces, segments);
  EXPECT_EQ(segments, (std::vector<int32_t>{1, 1, 1, 2, 2, 0}));
  write_cu_seqlens(pieces, 6, bounds);
  EXPECT_EQ(bounds, (std::vector<int32_t>{0, 3, 5, 6, 6}));
}

}  // namespace
}  // namespace headrace
