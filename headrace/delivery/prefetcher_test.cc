// SPDX-License-Identifier: Apache-2.0
// Every batch that the consumer's stream reads equals its source, in whatever order the device
// works.
#include "headrace/delivery/prefetcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <stdexcept>

#include "headrace/base/error.h"
#include "headrace/base/pages.h"
#include "headrace/device/device.h"
#include "headrace/device/simulated/simulated_device.h"

namespace headrace {
namespace {

HostTensor make_tensor(int64_t bytes, bool pinned = false) {
  auto memory = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(bytes));
  void* data = memory->data();
  return {{data, DType::kUInt8, {bytes}, {}}, std::move(memory), pinned};
}

// Two tensors, a large and a small one, whose sizes and bytes are determined by the number.
HostBatch make_batch(int64_t number, size_t largest, bool pinned = false) {
  std::mt19937_64 random(static_cast<uint64_t>(number));
  HostBatch batch;
  for (size_t limit : {largest, size_t{512}}) {
    batch.tensors.push_back(make_tensor(static_cast<int64_t>(random() % (limit + 1)), pinned));
    const TensorView& view = batch.tensors.back().view;
    auto* bytes = static_cast<uint8_t*>(view.data);
    for (size_t at = 0, size = view.dense_bytes(); at < size; at += sizeof(uint64_t)) {
      const uint64_t word = random();
      std::memcpy(bytes + at, &word, std::min(sizeof word, size - at));
    }
  }
  batch.rest = std::make_shared<int64_t>(number);
  return batch;
}

bool equals(const void* memory, const TensorView& expected) {
  return expected.elements() == 0 ||
         std::memcmp(memory, expected.data, expected.dense_bytes()) == 0;
}

class Numbered final : public BatchFeed {
 public:
  Numbered(int64_t count, size_t largest, bool pinned = false, int64_t fails_at = -1)
      : count_(count), largest_(largest), pinned_(pinned), fails_at_(fails_at) {}
  std::optional<HostBatch> next(const std::function<bool()>&) override {
    if (number_ == fails_at_) throw std::runtime_error("no batch " + std::to_string(number_));
    if (number_ == count_) return std::nullopt;
    return make_batch(number_++, largest_, pinned_);
  }

 private:
  int64_t number_ = 0, count_;
  size_t largest_;
  bool pinned_;
  int64_t fails_at_;
};

int64_t number_of(const DeviceBatch& batch) { return *static_cast<int64_t*>(batch.rest.get()); }

// A training step: what its stream reads of the batch when it reaches that point.
struct Trainer {
  static constexpr uintptr_t kStream = 0;
  SimulatedDevice& device;
  StreamPtr stream = device.foreign_stream(kStream);
  int64_t wrong = 0, steps = 0;
  double cost = 0;

  void step(const DeviceBatch& batch, size_t largest, bool pinned = false) {
    const auto expected =
        std::make_shared<HostBatch>(make_batch(number_of(batch), largest, pinned));
    for (size_t i = 0; i < batch.tensors.size(); ++i) {
      batch.tensors[i].lease->use_on(kStream);
      const void* memory = batch.tensors[i].view.data;
      stream->run(
          [this, memory, expected, i] { wrong += !equals(memory, expected->tensors[i].view); },
          i == 0 ? cost : 0);
    }
    ++steps;
  }
};

TEST(Prefetcher, TenThousandBatchesOfChangingShapesEqualTheirSource) {
  constexpr size_t kLargest = 90'000;
  auto device = std::make_shared<SimulatedDevice>(1);
  Prefetcher prefetcher(device, {.depth = 3});
  prefetcher.start(std::make_unique<Numbered>(10'000, kLargest));
  Trainer trainer{*device};
  size_t after_1000 = 0;
  while (auto batch = prefetcher.next()) {
    ASSERT_EQ(number_of(*batch), trainer.steps);
    trainer.step(*batch, kLargest);
    if (trainer.steps == 1000) after_1000 = device->allocated_bytes();
  }
  trainer.stream->synchronize();
  EXPECT_EQ(trainer.steps, 10'000);
  EXPECT_EQ(trainer.wrong, 0);
  EXPECT_EQ(prefetcher.stats().beyond, 0);
  // The ring has the memory that its largest batches needed, and 9,000 more batches add almost
  // none.
  EXPECT_LE(device->allocated_bytes(), after_1000 + 4 * kLargest / 16);
  // A slab for large tensors and one for those below 64 KiB, both with an eighth in reserve.
  EXPECT_LE(device->peak_bytes(), 4 * ((kLargest + 65'536) * 9 / 8 + 2 * 4096));
}

TEST(Prefetcher, PinnedBatchesAreCopiedInPlace) {
  constexpr size_t kLargest = 90'000;
  auto device = std::make_shared<SimulatedDevice>(2);
  Prefetcher prefetcher(device, {.depth = 2});
  prefetcher.start(std::make_unique<Numbered>(2'000, kLargest, true));
  Trainer trainer{*device};
  while (auto batch = prefetcher.next()) trainer.step(*batch, kLargest, true);
  trainer.stream->synchronize();
  EXPECT_EQ(trainer.steps, 2'000);
  EXPECT_EQ(trainer.wrong, 0);
  EXPECT_EQ(prefetcher.stats().pinned_bytes, 0u);
}

// The commonly copied recipe: copy the next batch on a side stream from one buffer, wait for that
// stream, and hope that the allocator does not reuse the memory too early.
int64_t wrong_values_if_unordered(bool waits_for_the_side_stream) {
  constexpr size_t kLargest = 9'000;
  auto device = std::make_shared<SimulatedDevice>(3);
  StreamPtr side = device->make_stream(), main = device->foreign_stream(0);
  std::vector<uint8_t> staging(kLargest);
  // As a caching allocator without record_stream: two batches alternate.
  std::shared_ptr<void> memory[2] = {device->allocate(kLargest), device->allocate(kLargest)};
  int64_t wrong = 0;
  for (int64_t number = 0; number < 500; ++number) {
    const auto batch = std::make_shared<HostBatch>(make_batch(number, kLargest));
    const TensorView& view = batch->tensors[0].view;
    if (view.elements() > 0) std::memcpy(staging.data(), view.data, view.dense_bytes());
    void* target = memory[number % 2].get();
    side->copy(target, staging.data(), view.dense_bytes());
    if (waits_for_the_side_stream) main->wait(side->record());
    main->run([&wrong, target, batch] { wrong += !equals(target, batch->tensors[0].view); });
  }
  main->synchronize();
  side->synchronize();
  return wrong;
}

TEST(Prefetcher, TheCommonMistakeIsDetectedByTheSameTest) {
  EXPECT_GT(wrong_values_if_unordered(false), 100);
  EXPECT_GT(wrong_values_if_unordered(true), 100);
}

// Copies take 5, steps take 5: all copies except the first overlap with steps, and steps never
// wait.
TEST(Prefetcher, CopiesOverlapTheSteps) {
  constexpr size_t kBytes = 500'000;
  constexpr int kBatches = 20;
  class Equal final : public BatchFeed {
   public:
    std::optional<HostBatch> next(const std::function<bool()>&) override {
      if (left_-- == 0) return std::nullopt;
      return HostBatch{{make_tensor(500'000)}, nullptr};
    }
    int left_ = 20;
  };
  auto device =
      std::make_shared<SimulatedDevice>(4, SimulatedCosts{.bytes_per_second = kBytes / 5.0});
  Prefetcher prefetcher(device, {.depth = 2});
  prefetcher.start(std::make_unique<Equal>());
  StreamPtr stream = device->foreign_stream(0);
  while (auto batch = prefetcher.next()) {
    batch->tensors[0].lease->use_on(0);
    stream->run([] {}, 5);
  }
  stream->synchronize();
  std::vector<SimulatedWork> copies, steps;
  for (const SimulatedWork& work : device->timeline()) {
    (work.kind == SimulatedWork::Kind::kCopy ? copies : steps).push_back(work);
  }
  ASSERT_EQ(copies.size(), size_t{kBatches});
  ASSERT_EQ(steps.size(), size_t{kBatches});
  for (int i = 0; i < kBatches; ++i) {
    EXPECT_DOUBLE_EQ(copies[i].begin, 5.0 * i);
    EXPECT_DOUBLE_EQ(steps[i].begin, 5.0 * (i + 1));
  }
}

TEST(Prefetcher, AnErrorOfTheSourceIsRaisedAtItsBatch) {
  auto device = std::make_shared<SimulatedDevice>(5);
  Prefetcher prefetcher(device, {.depth = 4});
  prefetcher.start(std::make_unique<Numbered>(100, 1000, false, 7));
  for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(number_of(prefetcher.next().value()), i);
  EXPECT_THROW((void)prefetcher.next(), std::runtime_error);
  EXPECT_EQ(prefetcher.next(), std::nullopt);
  prefetcher.start(std::make_unique<Numbered>(3, 1000));  // and it can continue
  EXPECT_EQ(number_of(prefetcher.next().value()), 0);
}

TEST(Prefetcher, ANewRunAfterABreakStartsAtTheFirstBatch) {
  auto device = std::make_shared<SimulatedDevice>(6);
  Prefetcher prefetcher(device, {.depth = 2});
  for (int run = 0; run < 50; ++run) {
    prefetcher.start(std::make_unique<Numbered>(20, 3000));
    for (int64_t i = 0; i < run % 20; ++i) EXPECT_EQ(number_of(prefetcher.next().value()), i);
  }
  prefetcher.stop();
  EXPECT_EQ(prefetcher.next(), std::nullopt);
}

TEST(Prefetcher, AConsumerThatHoldsEveryBatchGetsNewMemoryAndOneWarning) {
  constexpr size_t kLargest = 70'000;
  auto device = std::make_shared<SimulatedDevice>(7);
  std::vector<std::string> warnings;
  Prefetcher prefetcher(
      device, {.depth = 2, .warn = [&](const std::string& text) { warnings.push_back(text); }});
  prefetcher.start(std::make_unique<Numbered>(40, kLargest));
  std::vector<DeviceBatch> kept;
  while (auto batch = prefetcher.next()) kept.push_back(std::move(*batch));
  ASSERT_EQ(kept.size(), 40u);
  for (const DeviceBatch& batch : kept) {
    const HostBatch expected = make_batch(number_of(batch), kLargest);
    for (size_t i = 0; i < batch.tensors.size(); ++i) {
      batch.tensors[i].lease->wait_on_host();
      EXPECT_TRUE(equals(batch.tensors[i].view.data, expected.tensors[i].view));
    }
  }
  EXPECT_GT(prefetcher.stats().beyond, 0);
  ASSERT_FALSE(warnings.empty());
  EXPECT_NE(warnings[0].find("keeps 3 batches on simulated"), std::string::npos) << warnings[0];
  EXPECT_EQ(std::count(warnings.begin(), warnings.end(), warnings[0]), 1);
}

TEST(Prefetcher, BatchesOutliveIt) {
  auto device = std::make_shared<SimulatedDevice>(8);
  std::optional<DeviceBatch> kept;
  {
    Prefetcher prefetcher(device, {.depth = 2});
    prefetcher.start(std::make_unique<Numbered>(10, 100'000));
    kept = prefetcher.next();
  }
  kept->tensors[0].lease->wait_on_host();
  EXPECT_TRUE(equals(kept->tensors[0].view.data, make_batch(0, 100'000).tensors[0].view));
  kept = std::nullopt;
  EXPECT_EQ(device->allocated_bytes(), 0u);
}

TEST(Prefetcher, UnpinnableMemoryIsUsedWithOneWarning) {
  auto device = std::make_shared<SimulatedDevice>(9, SimulatedCosts{}, 0, /*pins=*/false);
  std::vector<std::string> warnings;
  Prefetcher prefetcher(
      device, {.depth = 2, .warn = [&](const std::string& text) { warnings.push_back(text); }});
  prefetcher.start(std::make_unique<Numbered>(100, 9000));
  Trainer trainer{*device};
  while (auto batch = prefetcher.next()) trainer.step(*batch, 9000);
  trainer.stream->synchronize();
  EXPECT_EQ(trainer.wrong, 0);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("cannot be pinned"), std::string::npos);
}

TEST(Prefetcher, StagingStaysWithinItsLimit) {
  constexpr size_t kLargest = 100'000;
  auto device = std::make_shared<SimulatedDevice>(10);
  Prefetcher prefetcher(device, {.depth = 3, .staging_limit = 150'000});
  prefetcher.start(std::make_unique<Numbered>(500, kLargest));
  Trainer trainer{*device};
  while (auto batch = prefetcher.next()) trainer.step(*batch, kLargest);
  trainer.stream->synchronize();
  EXPECT_EQ(trainer.wrong, 0);
  EXPECT_LE(prefetcher.stats().pinned_bytes, 150'000u);
}

TEST(Prefetcher, RunningOutOfDeviceMemoryIsAnErrorWithTheNumbers) {
  auto device = std::make_shared<SimulatedDevice>(11, SimulatedCosts{}, 1 << 20);
  Prefetcher prefetcher(device, {.depth = 2});
  class Growing final : public BatchFeed {
   public:
    std::optional<HostBatch> next(const std::function<bool()>&) override {
      return HostBatch{{make_tensor(1000 << number_++)}, nullptr};
    }
    int number_ = 0;
  };
  prefetcher.start(std::make_unique<Growing>());
  try {
    while (prefetcher.next()) {
    }
    FAIL() << "all batches fit";
  } catch (const Exception& failure) {
    EXPECT_EQ(failure.error().code->id, "HR0880");
    EXPECT_NE(failure.error().what.find("of 1.0 MiB are free"), std::string::npos)
        << failure.error().what;
  }
  prefetcher.start(std::make_unique<Numbered>(5, 1000));  // the device is usable afterwards
  EXPECT_EQ(number_of(prefetcher.next().value()), 0);
}

TEST(Prefetcher, ReportsWhatItWaitsFor) {
  class Stuck final : public BatchFeed {
   public:
    std::optional<HostBatch> next(const std::function<bool()>& stopping) override {
      while (!stopping()) std::this_thread::yield();
      return std::nullopt;
    }
  };
  auto device = std::make_shared<SimulatedDevice>(12);
  struct Enough {};
  std::vector<std::string> warnings;
  Prefetcher prefetcher(device,
                        {.depth = 2, .patience_seconds = 0.1, .warn = [&](const std::string& text) {
                           warnings.push_back(text);
                           throw Enough{};
                         }});
  prefetcher.start(std::make_unique<Stuck>());
  EXPECT_THROW((void)prefetcher.next(), Enough);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("the source has not delivered its next batch"), std::string::npos);
}

TEST(Prefetcher, BatchesWithoutTensorsArePassedUnchanged) {
  class Plain final : public BatchFeed {
   public:
    std::optional<HostBatch> next(const std::function<bool()>&) override {
      if (number_ == 5) return std::nullopt;
      return HostBatch{{}, std::make_shared<int64_t>(number_++)};
    }
    int64_t number_ = 0;
  };
  Prefetcher prefetcher(host_device(), {.depth = 2});
  prefetcher.start(std::make_unique<Plain>());
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(number_of(prefetcher.next().value()), i);
  EXPECT_EQ(prefetcher.next(), std::nullopt);
}

}  // namespace
}  // namespace headrace
