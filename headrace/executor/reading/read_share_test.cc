// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/reading/read_share.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "headrace/codecs/video/recent_tracks.h"

namespace headrace {
namespace {

TEST(ExpectedSize, IsUnknownBeforeTheFirstRecord) {
  ExpectedSize expected;
  EXPECT_EQ(expected.bytes(), 0u);
  expected.add(7);
  EXPECT_EQ(expected.bytes(), 7u);
}

TEST(ExpectedSize, OneHugeRecordDoesNotCount) {
  ExpectedSize expected;
  for (int i = 0; i < 100; ++i) expected.add(1000 + i % 10);
  const size_t before = expected.bytes();
  expected.add(58 << 20);
  for (int i = 0; i < 100; ++i) {
    expected.add(1000 + i % 10);
    EXPECT_LE(expected.bytes(), before + 10);
  }
}

TEST(ExpectedSize, ManyLargeRecordsCount) {
  ExpectedSize expected;
  for (int i = 0; i < 100; ++i) expected.add(i % 10 == 0 ? 50'000 : 1000);
  EXPECT_EQ(expected.bytes(), 50'000u);
}

TEST(BytesOfRecords, IncludeTheirPartsOfATableOfAVideo) {
  constexpr size_t kPackets = 100'000;
  auto track = std::make_shared<VideoTrack>();
  track->packets.resize(kPackets);
  const size_t table = RecentTracks::bytes_of(*track);
  EXPECT_GE(table, kPackets * sizeof(MediaPacket));
  std::vector<RecordData> records(4);
  records[0].fields.resize(2);
  records[0].fields[1].track = std::move(track);
  EXPECT_EQ(bytes_of(records[0]), table);
  for (size_t i = 1; i < records.size(); ++i) records[i].fields = records[0].fields;
  for (const RecordData& record : records) EXPECT_EQ(bytes_of(record), table / 4);
  // A record that is kept for its buffers keeps no table.
  ReadShare share(size_t{1} << 20, /*async=*/false);
  share.reserve_spares();
  records[0].owned.resize(1);
  records[0].owned[0].resize(1000);
  share.keep_spare(records[0]);
  EXPECT_EQ(share.in_use(), 1000u);
  EXPECT_EQ(bytes_of(records[1]), table / 3);
  EXPECT_EQ(share.take_spare().owned.size(), 1u);
  EXPECT_EQ(share.in_use(), 0u);
}

}  // namespace
}  // namespace headrace
