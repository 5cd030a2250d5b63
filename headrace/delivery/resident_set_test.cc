// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/resident_set.h"

#include <gtest/gtest.h>

#include <deque>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/delivery/resident_test_data.h"
#include "headrace/device/simulated/simulated_device.h"

namespace headrace {
namespace {

// Batches of several epochs, some of which the consumer keeps, equal the rows that the sampler
// selects.
void check_batches(const DevicePtr& device, uint32_t seed, bool partial) {
  std::mt19937 random(seed);
  const int64_t records = 1 + int64_t(random() % 60), rows = 1 + int64_t(random() % 16);
  const ResidentData data = random_data(random, records);
  const SamplerPtr sampler = any_sampler(random, records);
  const int64_t on_device = partial ? int64_t(random() % uint64_t(records + 1)) : -1;
  ResidentSet set(device, data.fields, records, {.batch_rows = rows, .on_device = on_device});
  const BatchLayout layout(sampler->size(), rows, 0, 1, LastBatch::kPad);
  struct Kept {
    Batch batch;
    std::vector<Bytes> expected;
  };
  std::deque<Kept> kept;
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    for (int64_t number = 0; number < layout.batches(); ++number) {
      const BatchRange range = layout.range(number);
      Kept next{set.take(*sampler, seed, epoch, number, range), {}};
      for (size_t i = 0; i < data.fields.size(); ++i) {
        next.expected.push_back(expected_rows(data.values[i], data.fields[i].record_bytes(),
                                              *sampler, seed, epoch, range));
      }
      kept.push_back(std::move(next));
      while (kept.size() > random() % 7) {
        for (size_t i = 0; i < data.fields.size(); ++i) {
          ASSERT_EQ(read(*device, kept.front().batch.fields[i]), kept.front().expected[i])
              << "seed " << seed << ", field " << i << ", batch " << kept.front().batch.index;
        }
        kept.pop_front();
      }
    }
  }
}

TEST(ResidentSet, GivesTheSampledRowsOnADeviceThatWorksLateAndOutOfOrder) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    check_batches(std::make_shared<SimulatedDevice>(seed), seed, false);
  }
}

TEST(ResidentSet, GivesTheSameBatchesWhenOnlyAPartIsOnTheDevice) {
  for (uint32_t seed = 0; seed < 120; ++seed) {
    check_batches(std::make_shared<SimulatedDevice>(seed), seed, true);
  }
}

// Batches from arenas, for one of several ranks: some are taken twice or skipped, and the consumer
// changes them, each on its own stream.
void check_arenas(uint32_t seed) {
  std::mt19937 random(seed);
  auto device = std::make_shared<SimulatedDevice>(seed);
  const int64_t records = 20 + int64_t(random() % 80), rows = 1 + int64_t(random() % 6);
  const ResidentData data = random_data(random, records);
  const SamplerPtr sampler = any_sampler(random, records);
  ResidentSet set(device, data.fields, records, {.batch_rows = rows});
  const int ranks = 1 + int(random() % 3), rank = int(random() % uint32_t(ranks));
  const BatchLayout layout(sampler->size(), rows * ranks, rank, ranks, LastBatch::kPad);
  std::deque<std::pair<Batch, std::vector<Bytes>>> kept;
  const size_t max_kept = random() % 9;
  for (uint64_t epoch = 0; epoch < 2; ++epoch) {
    for (int64_t number = 0; number < layout.batches(); ++number) {
      if (random() % 9 == 0) number = int64_t(random() % uint64_t(layout.batches()));
      Batch batch = set.take(*sampler, layout, seed, epoch, number);
      ASSERT_EQ(batch.index, number);
      std::vector<Bytes> expected;
      for (size_t i = 0; i < data.fields.size(); ++i) {
        const BatchField& field = batch.fields[i];
        expected.push_back(expected_rows(data.values[i], data.fields[i].record_bytes(), *sampler,
                                         seed, epoch, layout.range(number)));
        ASSERT_EQ(read(*device, field), expected.back()) << "seed " << seed << ", field " << i;
        if (random() % 2) continue;
        const StreamPtr consumer = device->make_stream();
        std::static_pointer_cast<DeviceLease>(field.lease)->use_on(consumer->handle());
        Bytes& changed = expected.back();
        for (uint8_t& byte : changed) byte = uint8_t(byte + 1);
        const auto source = std::make_shared<Bytes>(changed);
        consumer->run([source, to = field.view.data] {
          if (!source->empty()) std::memcpy(to, source->data(), source->size());
        });
        consumer->synchronize();
      }
      kept.emplace_back(std::move(batch), std::move(expected));
      while (kept.size() > max_kept) {
        for (size_t i = 0; i < data.fields.size(); ++i) {
          ASSERT_EQ(read(*device, kept.front().first.fields[i]), kept.front().second[i]);
        }
        kept.pop_front();
      }
    }
  }
}

TEST(ResidentSet, SlicingBatchesTogetherEqualsSlicingThemOneByOne) {
  for (uint32_t seed = 0; seed < 24; ++seed) check_arenas(seed);
}

ResidentField bytes_field(const Bytes& values, int64_t row) {
  return {.name = "data", .shape = {row}, .values = values.data()};
}

TEST(ResidentSet, GivesRecordIdsAndValidFlags) {
  const Bytes values(10);
  const auto device = std::make_shared<SimulatedDevice>(1);
  const SamplerPtr sampler = shuffled(10);
  ResidentSet set(device,
                  {{.name = "id", .origin = OutputOrigin::kId, .dtype = DType::kInt64},
                   bytes_field(values, 1),
                   {.name = "valid", .origin = OutputOrigin::kValid, .dtype = DType::kBool}},
                  10, {.batch_rows = 4});
  const Batch batch = set.take(*sampler, 5, 2, 2, {8, 12, 10});
  const Bytes ids = read(*device, batch.fields[0]);
  for (int64_t row = 0; row < 4; ++row) {
    int64_t id;
    std::memcpy(&id, ids.data() + row * 8, 8);
    EXPECT_EQ(id, sampler->index(5, 2, (8 + row) % 10));
  }
  EXPECT_EQ(read(*device, batch.fields[2]), (Bytes{1, 1, 0, 0}));
}

TEST(ResidentSet, AllocatesNoMemoryForBatchesAfterTheFirstFew) {
  const Bytes values(1000);
  auto device = std::make_shared<SimulatedDevice>(3);
  ResidentSet set(device, {bytes_field(values, 10)}, 100, {.batch_rows = 8});
  const SamplerPtr sampler = shuffled(100);
  for (int i = 0; i < 20; ++i) set.take(*sampler, 0, 0, i % 12, {8 * (i % 12), 8 * (i % 12) + 8});
  const size_t allocated = device->allocated_bytes();
  for (int i = 0; i < 10'000; ++i) {
    set.take(*sampler, 0, uint64_t(i), 0, {0, 8});
  }
  EXPECT_EQ(device->peak_bytes(), allocated);
  EXPECT_EQ(set.stats().beyond, 0);
}

TEST(ResidentSet, AHeldBatchIsUnchangedAfterAThousandOthers) {
  Bytes values(1000);
  std::iota(values.begin(), values.end(), uint8_t{0});
  auto device = std::make_shared<SimulatedDevice>(3);
  ResidentSet set(device, {bytes_field(values, 10)}, 100, {.batch_rows = 2});
  const SamplerPtr sampler = sequential(100);
  const BatchLayout layout(100, 2, 0, 1, LastBatch::kKeep);
  std::optional<Batch> kept;
  size_t allocated = 0;
  for (uint64_t epoch = 0; epoch < 22; ++epoch) {
    for (int64_t number = 0; number < 50; ++number) {
      Batch batch = set.take(*sampler, layout, 0, epoch, number);
      if (epoch == 0 && number == 7) kept = std::move(batch);
    }
    if (epoch == 4) allocated = device->allocated_bytes();
  }
  EXPECT_EQ(read(*device, kept->fields[0]), Bytes(values.begin() + 140, values.begin() + 160));
  EXPECT_EQ(device->peak_bytes(), allocated);
  EXPECT_EQ(set.stats().beyond, 0);
}

TEST(ResidentSet, WithLittleDeviceMemoryBatchesAreSlicedOneByOne) {
  const Bytes values(1000);
  for (int64_t n = 1; n <= 3; ++n) {
    auto device = std::make_shared<SimulatedDevice>(9);
    ResidentSet set(device, {bytes_field(values, 10), bytes_field(values, 1)}, 100,
                    {.batch_rows = 5});
    const SamplerPtr sampler = shuffled(100);
    const BatchLayout layout(100, 5, 0, 1, LastBatch::kKeep);
    device->refuse_allocation(n);
    for (int64_t number = 0; number < 20; ++number) {
      const Batch batch = set.take(*sampler, layout, 0, 0, number);
      EXPECT_EQ(read(*device, batch.fields[0]),
                expected_rows(values, 10, *sampler, 0, 0, layout.range(number)));
    }
  }
}

TEST(ResidentSet, ABatchOutlivesTheSet) {
  const Bytes values = {0, 1, 2, 3, 4, 5, 6, 7};
  auto device = std::make_shared<SimulatedDevice>(4);
  auto set = std::make_unique<ResidentSet>(device, std::vector{bytes_field(values, 2)}, 4,
                                           ResidentOptions{.batch_rows = 2});
  const Batch batch = set->take(*sequential(4), 0, 0, 1, {2, 4});
  set.reset();
  EXPECT_EQ(read(*device, batch.fields[0]), (Bytes{4, 5, 6, 7}));
}

TEST(ResidentSet, AViewSharesTheMemoryOfTheData) {
  const Bytes values = {0, 1, 2, 3, 4, 5, 6, 7};
  ResidentField field = bytes_field(values, 2);
  field.owner = std::make_shared<int>();
  auto device = std::make_shared<SimulatedDevice>(4);
  ResidentSet there(device, {field}, 4, {.batch_rows = 2, .view = true});
  const size_t allocated = device->allocated_bytes();
  EXPECT_EQ(read(*device, there.take(*sequential(4), 0, 0, 1, {2, 4}).fields[0]),
            (Bytes{4, 5, 6, 7}));
  EXPECT_EQ(device->allocated_bytes(), allocated);
}

TEST(ResidentSet, AConsumerThatHoldsEveryBatchGetsNewMemory) {
  Bytes values(100);
  std::iota(values.begin(), values.end(), uint8_t{0});
  auto device = std::make_shared<SimulatedDevice>(5);
  ResidentSet set(device, {bytes_field(values, 1)}, 100, {.batch_rows = 5});
  std::vector<Batch> kept;
  for (int64_t i = 0; i < 20; ++i) {
    kept.push_back(set.take(*sequential(100), 0, 0, i, {5 * i, 5 * i + 5}));
  }
  EXPECT_EQ(set.stats().beyond, 20 - ResidentSet::kBatches);
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(read(*device, kept[size_t(i)].fields[0]),
              Bytes(values.begin() + 5 * i, values.begin() + 5 * i + 5));
  }
}

TEST(ResidentSet, DataThatIsTooLargeIsRejectedWithTheNumbers) {
  const Bytes values(size_t{3} << 20);
  auto device = std::make_shared<SimulatedDevice>(6, SimulatedCosts{}, size_t{2} << 20);
  std::string message;
  try {
    ResidentSet set(device, {bytes_field(values, 1024)}, 3072, {.batch_rows = 1});
  } catch (const Exception& exception) {
    message = exception.what();
  }
  EXPECT_EQ(message.substr(0, message.find('\n')),
            "HR0891 the data does not fit on the device: simulated: 3.0 MiB for 3072 records and "
            "0.0 MiB for batches, 2.0 MiB of 2.0 MiB are free");
  EXPECT_NE(message.find("fraction=0.63 keeps as much as fits"), std::string::npos) << message;
  ResidentSet set(device, {bytes_field(values, 1024)}, 3072, {.batch_rows = 1, .on_device = 1935});
  EXPECT_LE(device->peak_bytes(), size_t{2} << 20);
}

}  // namespace
}  // namespace headrace
