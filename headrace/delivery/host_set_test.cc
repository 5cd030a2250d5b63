// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/host_set.h"

#include <gtest/gtest.h>

#include <deque>
#include <future>
#include <numeric>
#include <random>
#include <set>

#include "headrace/delivery/resident_test_data.h"
#include "headrace/device/device.h"

namespace headrace {
namespace {

Bytes read(const BatchField& field) { return read(*host_device(), field); }

BatchLayout layout_of(const Sampler& sampler, int64_t rows, LastBatch last = LastBatch::kPad) {
  return BatchLayout(sampler.size(), rows, 0, 1, last);
}

// Batches of several epochs, some of which the consumer keeps, equal the rows that the sampler
// selects, even if batches are skipped or restarted.
void check_batches(const ResidentData& data, const SamplerPtr& sampler, int64_t rows, int threads,
                   std::mt19937& random) {
  const BatchLayout layout = layout_of(*sampler, rows);
  HostSet set(data.fields, {.sampler = sampler, .layout = layout, .threads = threads});
  struct Kept {
    Batch batch;
    std::vector<Bytes> expected;
  };
  std::deque<Kept> kept;
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    const uint64_t seed = random() % 2;
    for (int64_t number = 0; number < layout.batches(); ++number) {
      if (random() % 8 == 0) number = int64_t(random() % uint64_t(layout.batches()));
      std::optional<Batch> batch = set.take(seed, epoch, number);
      ASSERT_TRUE(batch);
      EXPECT_EQ(batch->index, number);
      EXPECT_EQ(batch->epoch, int64_t(epoch));
      Kept next{std::move(*batch), {}};
      for (size_t i = 0; i < data.fields.size(); ++i) {
        next.expected.push_back(expected_rows(data.values[i], data.fields[i].record_bytes(),
                                              *sampler, seed, epoch, layout.range(number)));
      }
      kept.push_back(std::move(next));
      while (kept.size() > random() % 7) {
        for (size_t i = 0; i < data.fields.size(); ++i) {
          ASSERT_EQ(read(kept.front().batch.fields[i]), kept.front().expected[i])
              << "field " << i << ", batch " << kept.front().batch.index;
        }
        kept.pop_front();
      }
    }
  }
}

TEST(HostSet, GivesTheRowsThatTheSamplerSelects) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const int64_t records = 1 + int64_t(random() % 60), rows = 1 + int64_t(random() % 16);
    const ResidentData data = random_data(random, records);
    check_batches(data, any_sampler(random, records), rows, 1 + seed % 3, random);
  }
}

// Half a megabyte per batch, so that it is made ahead.
ResidentData large_data(std::mt19937& random, int64_t records) {
  ResidentData data;
  data.fields = {{.name = "image", .shape = {3, 50, 50}},
                 {.name = "label", .dtype = DType::kInt64, .shape = {}}};
  for (ResidentField& field : data.fields) {
    Bytes& values = data.values.emplace_back(field.record_bytes() * size_t(records));
    for (uint8_t& byte : values) byte = uint8_t(random());
  }
  for (size_t i = 0; i < 2; ++i) data.fields[i].values = data.values[i].data();
  return data;
}

TEST(HostSet, GivesTheSameRowsIfWorkersMakeBatchesAhead) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const int64_t records = 600 + int64_t(random() % 100);
    const ResidentData data = large_data(random, records);
    check_batches(data, any_sampler(random, records), 64, 2 + seed % 3, random);
  }
}

TEST(HostSet, GivesRecordIdsAndValidFlags) {
  const Bytes values(10);
  const SamplerPtr sampler = shuffled(10);
  HostSet set({{.name = "id", .origin = OutputOrigin::kId, .dtype = DType::kInt64},
               {.name = "data", .shape = {1}, .values = values.data()},
               {.name = "valid", .origin = OutputOrigin::kValid, .dtype = DType::kBool}},
              {.sampler = sampler, .layout = layout_of(*sampler, 4)});
  const Batch batch = *set.take(5, 2, 2);
  const Bytes ids = read(batch.fields[0]);
  for (int64_t row = 0; row < 4; ++row) {
    int64_t id;
    std::memcpy(&id, ids.data() + row * 8, 8);
    EXPECT_EQ(id, sampler->index(5, 2, (8 + row) % 10));
  }
  EXPECT_EQ(read(batch.fields[2]), (Bytes{1, 1, 0, 0}));
}

TEST(HostSet, ReusesTheMemoryOfAFewBatches) {
  std::mt19937 random(1);
  for (int threads : {1, 3}) {
    const ResidentData data = large_data(random, 256);
    const SamplerPtr sampler = shuffled(256);
    HostSet set(data.fields,
                {.sampler = sampler, .layout = layout_of(*sampler, 64), .threads = threads});
    std::set<const void*> places;
    std::optional<Batch> kept;
    for (uint64_t epoch = 0; epoch < 50; ++epoch) {
      for (int64_t number = 0; number < 4; ++number) {
        kept = set.take(0, epoch, number);
        places.insert(kept->fields[0].view.data);
      }
    }
    EXPECT_LE(places.size(), 4u);
    EXPECT_EQ(set.stats().beyond, 0);
    EXPECT_LE(set.stats().batch_bytes, 4u * 64 * (7500 + 8));
  }
}

TEST(HostSet, AConsumerThatHoldsEveryBatchGetsNewMemory) {
  std::mt19937 random(2);
  for (int threads : {1, 3}) {
    const ResidentData data = large_data(random, 640);
    const SamplerPtr sampler = shuffled(640);
    HostSet set(data.fields,
                {.sampler = sampler, .layout = layout_of(*sampler, 64), .threads = threads});
    std::vector<Batch> kept;
    for (int64_t number = 0; number < 10; ++number) kept.push_back(*set.take(0, 0, number));
    EXPECT_EQ(set.stats().beyond, 10 - 4);
    for (int64_t number = 0; number < 10; ++number) {
      EXPECT_EQ(
          read(kept[size_t(number)].fields[0]),
          expected_rows(data.values[0], 7500, *sampler, 0, 0, {64 * number, 64 * number + 64}));
    }
  }
}

TEST(HostSet, HeldLabelsDoNotKeepImagesAlive) {
  std::mt19937 random(3);
  const ResidentData data = large_data(random, 640);
  const SamplerPtr sampler = shuffled(640);
  HostSet set(data.fields, {.sampler = sampler, .layout = layout_of(*sampler, 64), .threads = 2});
  std::set<const void*> places;
  std::vector<BatchField> labels;
  for (int64_t number = 0; number < 10; ++number) {
    Batch batch = *set.take(0, 0, number);
    places.insert(batch.fields[0].view.data);
    labels.push_back(std::move(batch.fields[1]));
  }
  EXPECT_LE(places.size(), 4u);
}

TEST(HostSet, ASetMayBeDestroyedWhileBatchesAreMadeAhead) {
  std::mt19937 random(4);
  const ResidentData data = large_data(random, 640);
  const SamplerPtr sampler = shuffled(640);
  for (int round = 0; round < 50; ++round) {
    auto set = std::make_unique<HostSet>(
        data.fields,
        HostSetOptions{.sampler = sampler, .layout = layout_of(*sampler, 64), .threads = 3});
    const Batch batch = *set->take(0, uint64_t(round), round % 10);
    set.reset();
    const int64_t begin = 64 * (round % 10);
    EXPECT_EQ(read(batch.fields[0]), expected_rows(data.values[0], 7500, *sampler, 0,
                                                   uint64_t(round), {begin, begin + 64}));
  }
}

TEST(HostSet, BatchesMayBeDroppedByOtherThreads) {
  std::mt19937 random(5);
  const ResidentData data = large_data(random, 640);
  const SamplerPtr sampler = shuffled(640);
  HostSet set(data.fields, {.sampler = sampler, .layout = layout_of(*sampler, 64), .threads = 2});
  std::future<void> dropped;
  for (uint64_t epoch = 0; epoch < 10; ++epoch) {
    for (int64_t number = 0; number < 10; ++number) {
      Batch batch = *set.take(0, epoch, number);
      const Bytes labels =
          expected_rows(data.values[1], 8, *sampler, 0, epoch, {64 * number, 64 * number + 64});
      dropped = std::async(std::launch::async, [batch = std::move(batch), labels]() mutable {
        EXPECT_EQ(read(batch.fields[1]), labels);
        batch = {};
      });
    }
  }
}

TEST(HostSet, AViewSharesTheMemoryOfTheData) {
  Bytes values(8);
  std::iota(values.begin(), values.end(), uint8_t{0});
  const ResidentField field{
      .name = "data", .shape = {2}, .values = values.data(), .owner = std::make_shared<int>()};
  HostSet set({field, {.name = "id", .origin = OutputOrigin::kId, .dtype = DType::kInt64}},
              {.sampler = sequential(4),
               .layout = layout_of(*sequential(4), 2, LastBatch::kKeep),
               .view = true});
  const Batch batch = *set.take(0, 0, 1);
  EXPECT_EQ(batch.fields[0].view.data, values.data() + 4);
  EXPECT_EQ(batch.fields[0].lease, field.owner);
  EXPECT_EQ(static_cast<const int64_t*>(batch.fields[1].view.data)[1], 3);
  EXPECT_EQ(set.stats().batch_bytes, 0u);
}

}  // namespace
}  // namespace headrace
