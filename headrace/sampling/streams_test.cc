// SPDX-License-Identifier: Apache-2.0
#include "headrace/sampling/streams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "headrace/sampling/batch_layout.h"
#include "headrace/sampling/order_test_promises.h"
#include "headrace/sampling/stream_bounds.h"

namespace headrace {
namespace {

using Indices = std::vector<int64_t>;

// Blocks of 60 to 92 records: 8 MiB of records of 110 kB.
Indices blocks_of_photos(int64_t blocks) {
  Indices ends;
  for (int64_t i = 0; i < blocks; ++i)
    ends.push_back((ends.empty() ? 0 : ends.back()) + 60 + i * 7 % 33);
  return ends;
}

int64_t block_of(const Indices& ends, int64_t record) {
  return std::ranges::upper_bound(ends, record) - ends.begin();
}

TEST(Streams, EachRecordIsDeliveredOnceForAnySizes) {
  for (const Indices& ends : {Indices{1}, Indices{0, 5, 5, 9, 9}, Indices{300, 301, 302, 303},
                              blocks_of_photos(7), blocks_of_photos(33)}) {
    for (const int64_t count : {3, 64}) {
      for (const int64_t global_batch : {1, 64, 5000}) {
        for (const bool sticky : {true, false}) {
          const SamplerPtr order = shuffled_streams(
              ends, {.count = count, .window = 3, .sticky = sticky, .global_batch = global_batch});
          ASSERT_EQ(order->size(), ends.back());
          expect_each_record_once(*order, order->size());
        }
      }
    }
  }
  Indices many;  // blocks of one to three records, in a table with several lines
  for (int64_t i = 0; i < 9001; ++i) many.push_back((many.empty() ? 0 : many.back()) + 1 + i % 3);
  const SamplerPtr order = shuffled_streams(many, {.count = 64, .window = 5, .global_batch = 99});
  expect_each_record_once(*order, order->size());
  expect_order_promises(*shuffled_streams(blocks_of_photos(9), {.count = 4, .global_batch = 24}),
                        blocks_of_photos(9).back());
}

TEST(Streams, AreAtMostAsManyAsBlocksAndRecordsOfABatch) {
  EXPECT_EQ(streams_for(1), 64);
  EXPECT_EQ(streams_for(32), 64);
  EXPECT_EQ(streams_for(33), 128);
  EXPECT_EQ(streams_for(125), 256);
  EXPECT_EQ(stream_count(64, 1000, 256), 64);
  EXPECT_EQ(stream_count(64, 20, 256), 16);
  EXPECT_EQ(stream_count(64, 1000, 24), 16);
  EXPECT_EQ(stream_count(24, 5, 256), 3);
  EXPECT_EQ(stream_count(64, 0, 256), 1);
  EXPECT_EQ(shuffled_streams(blocks_of_photos(20), {.global_batch = 256})->streams(), 16);
}

// For each record of the epoch, the stream of its row.
std::map<int64_t, int64_t> streams_of_records(const Sampler& order, uint64_t epoch, int64_t batch) {
  std::map<int64_t, int64_t> out;
  for (int64_t at = 0; at < order.size(); ++at) {
    const int64_t count = std::min(batch, order.size() - at / batch * batch);
    int64_t stream = 0;  // the last one that begins at or before the row
    while ((stream + 1) * count / order.streams() <= at % batch) ++stream;
    out[order.index(3, epoch, at)] = stream;
  }
  return out;
}

TEST(Streams, ABlockBelongsToOneStreamExceptAtBoundaries) {
  constexpr int64_t kBatch = 48, kStreams = 8;
  const Indices ends = blocks_of_photos(64);
  for (const bool sticky : {true, false}) {
    const SamplerPtr order = shuffled_streams(
        ends, {.count = kStreams, .window = 4, .sticky = sticky, .global_batch = kBatch});
    const auto first = streams_of_records(*order, 0, kBatch);
    std::map<int64_t, std::set<int64_t>> of_block;
    for (const auto& [record, stream] : first) of_block[block_of(ends, record)].insert(stream);
    EXPECT_LT(
        std::ranges::count_if(of_block, [](const auto& block) { return block.second.size() > 1; }),
        kStreams);
    EXPECT_EQ(streams_of_records(*order, 5, kBatch) == first, sticky);
  }
}

// Total blocks read by the nodes, as a multiple of the dataset.
double amplification(int64_t nodes, int64_t global_batch, int64_t streams) {
  const Indices ends = blocks_of_photos(64 * nodes);
  const SamplerPtr order = shuffled_streams(ends, {.count = streams, .global_batch = global_batch});
  int64_t read = 0;
  Indices rows;
  for (int64_t node = 0; node < nodes; ++node) {
    std::vector<bool> met(ends.size());
    const BatchLayout layout(order->size(), global_batch, int(node), int(nodes), LastBatch::kKeep);
    for (int64_t batch = 0; batch < layout.batches(); ++batch) {
      const BatchRange mine = layout.range(batch);
      rows.resize(size_t(mine.size()));
      order->indices(1, 0, mine.begin, rows);
      for (const int64_t record : rows) met[size_t(block_of(ends, record))] = true;
    }
    read += std::ranges::count(met, true);
  }
  return double(read) / double(ends.size());
}

TEST(Streams, NodesTogetherReadTheDatasetOnce) {
  EXPECT_LE(amplification(8, 512, 64), 1.02);
  EXPECT_LE(amplification(32, 2048, 64), 1.02);
  EXPECT_LE(amplification(12, 768, 64), 1.0 + 12.0 / 64);  // streams at a boundary are read twice
}

TEST(Streams, ARankAnnouncesTheBlocksOfItsRowsBeforeItReadsThem) {
  constexpr int64_t kBatch = 64;
  const Indices ends = blocks_of_photos(96);
  const SamplerPtr order =
      shuffled_streams(ends, {.count = 16, .window = 2, .global_batch = kBatch});
  int64_t announced_by_all = 0;
  for (int rank = 0; rank < 4; ++rank) {
    const BatchLayout layout(order->size(), kBatch, rank, 4, LastBatch::kKeep);
    std::set<int64_t> announced;
    for (int64_t batch = 0; batch < layout.batches(); ++batch) {
      for (const RecordRange& range : order->begun_by(3, 1, batch, batch + 1, layout)) {
        for (int64_t i = range.begin; i < range.end; ++i) EXPECT_TRUE(announced.insert(i).second);
      }
      const BatchRange mine = layout.range(batch);
      for (int64_t i = mine.begin; i < mine.end; ++i) {
        EXPECT_TRUE(announced.contains(order->index(3, 1, i)));
      }
    }
    announced_by_all += std::ssize(announced);
  }
  EXPECT_EQ(announced_by_all, order->size());
}

// 10^9 records over 1,000 ranks: what each batch takes from each stream is an interval, and these
// are contiguous from batch to batch and from rank to rank.
TEST(Streams, IntervalsAreContiguousForABillionRecords) {
  constexpr int64_t kRecords = 1'000'000'007, kStreams = 256;
  for (const int64_t batch : {4'096, 4'000, 1'000'003}) {
    const StreamRows rows(kRecords, batch, kStreams);
    EXPECT_EQ(rows.records_before(kStreams), kRecords);
    const int64_t batches = (kRecords + batch - 1) / batch;
    for (int64_t stream = 0; stream < kStreams; ++stream) {
      EXPECT_EQ(rows.records_before(stream) + rows.drawn(stream, batches),
                rows.records_before(stream + 1));
      for (const int64_t k : {int64_t{0}, batches / 2, batches - 1}) {
        const int64_t count = rows.size_of(k);
        const int64_t first = rows.first_row(stream, count);
        const int64_t end = rows.first_row(stream + 1, count);
        EXPECT_EQ(rows.drawn(stream, k + 1) - rows.drawn(stream, k), end - first);
        if (first == end) continue;
        const auto begin = rows.at(k * batch + first), last = rows.at(k * batch + end - 1);
        EXPECT_EQ(begin.stream, stream);
        EXPECT_EQ(last.stream, stream);
        EXPECT_EQ(begin.record, rows.drawn(stream, k));
        EXPECT_EQ(last.record, rows.drawn(stream, k + 1) - 1);
      }
    }
  }
}

TEST(Streams, AreAFunctionOfSeedEpochBlocksAndBatch) {
  const Indices ends = blocks_of_photos(40);
  const StreamOptions options{.count = 8, .global_batch = 32};
  const SamplerPtr one = shuffled_streams(ends, options), again = shuffled_streams(ends, options);
  const Indices first = records_of_epoch(*one, 7, 2);
  EXPECT_NE(records_of_epoch(*one, 7, 3), first);
  EXPECT_NE(records_of_epoch(*one, 8, 2), first);
  EXPECT_EQ(records_of_epoch(*one, 7, 2), first);
  EXPECT_EQ(records_of_epoch(*again, 7, 2), first);
  EXPECT_EQ(one->fingerprint(), again->fingerprint());
  const auto other = [&](auto change) {
    StreamOptions changed = options;
    change(changed);
    return shuffled_streams(ends, changed)->fingerprint();
  };
  EXPECT_NE(other([](StreamOptions& o) { o.count = 4; }), one->fingerprint());
  EXPECT_NE(other([](StreamOptions& o) { o.window = 9; }), one->fingerprint());
  EXPECT_NE(other([](StreamOptions& o) { o.sticky = false; }), one->fingerprint());
  // A state contains the batch number.
  EXPECT_EQ(other([](StreamOptions& o) { o.global_batch = 33; }), one->fingerprint());
  EXPECT_NE(shuffled_streams(blocks_of_photos(41), options)->fingerprint(), one->fingerprint());
}

// The windows of a stream are drawn as far as they are needed.
TEST(Streams, ARecordIsTheSameWhereverTheEpochIsEntered) {
  const Indices ends = blocks_of_photos(300);
  const StreamOptions options{.count = 4, .window = 2, .global_batch = 32};
  const Indices epoch = records_of_epoch(*shuffled_streams(ends, options), 7, 2);
  for (const int64_t first : {int64_t{0}, ends.back() - 1, ends.back() / 2}) {
    const SamplerPtr order = shuffled_streams(ends, options);
    EXPECT_EQ(order->index(7, 2, first), epoch[size_t(first)]);
    for (int64_t position = ends.back(); (position -= 37) >= 0;) {
      ASSERT_EQ(order->index(7, 2, position), epoch[size_t(position)]);
    }
    EXPECT_EQ(records_of_epoch(*order, 7, 2), epoch);
  }
}

}  // namespace
}  // namespace headrace
