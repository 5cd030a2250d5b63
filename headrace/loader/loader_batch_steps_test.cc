// SPDX-License-Identifier: Apache-2.0
// Batch steps on the filled slot: which rows are mixed is a function of seed, epoch and position.
#include <gtest/gtest.h>

#include "headrace/device/simulated/simulated_device.h"
#include "headrace/loader/loader_feed.h"
#include "headrace/loader/loader_scopes_test_ops.h"

namespace headrace::scopes_test {
namespace {

constexpr int64_t kGroup = 4;

int64_t value_of(const Batch& batch, int64_t row) {
  return static_cast<const int64_t*>(batch["value"].view.data)[row * Numbers::kWidth];
}

// Rows [first, first + count) are a group: each is factor * own + opposite, with one factor.
void expect_mixed(const Batch& batch, int64_t first, int64_t count) {
  const std::vector<int64_t> labels = labels_of(batch);  // not mixed: 3 * index
  int64_t factor = -1;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t own = labels[size_t(first + i)] / 3;
    const int64_t opposite = labels[size_t(first + count - 1 - i)] / 3;
    const int64_t rest = value_of(batch, first + i) - opposite;
    if (own == 0) {
      EXPECT_EQ(rest, 0);
      continue;
    }
    ASSERT_EQ(rest % own, 0) << "row " << first + i;
    if (factor < 0) factor = rest / own;
    EXPECT_EQ(rest / own, factor) << "row " << first + i;
  }
  EXPECT_GE(factor, 1);
  EXPECT_LE(factor, MixOpposites::kFactors);
}

TEST(BatchSteps, MixTheRowsOfEachGroup) {
  Loader loader(numbers(90), steps({mix(kGroup)}), options(16));
  int64_t batches = 0;
  while (auto batch = loader.next()) {
    for (int64_t row = 0; row < batch->size; row += kGroup) {
      expect_mixed(*batch, row, std::min(kGroup, batch->size - row));  // the last one is short
    }
    ++batches;
  }
  EXPECT_EQ(batches, 6);
}

TEST(BatchSteps, GiveTheSameResultEverywhere) {
  const auto source = [](ReadStyle style) { return numbers(150, {}, style); };
  for (LastBatch last : {LastBatch::kKeep, LastBatch::kDrop, LastBatch::kPad}) {
    LoaderOptions given = options(32);
    given.last_batch = last;  // 22 records are left: groups of 4, 4, 4, 4, 4, 2
    expect_one_result(source, steps({mix(kGroup)}), given);
  }
  LoaderOptions padded = options(32);
  padded.last_batch = LastBatch::kPad;
  expect_one_result(source, steps({mix(kGroup), mix(8), mix(2)}), padded);
}

TEST(BatchSteps, SubstitutedRecordsDoNotChangeGroups) {
  LoaderOptions given = options(32);
  given.on_error = OnError::kSubstitute;
  given.error_rate = 1;
  const auto source = [](ReadStyle style) { return numbers(150, {3, 50, 51, 149}, style); };
  expect_one_result(source, steps({mix(kGroup)}), given);
}

TEST(BatchSteps, AGroupConsistsOfItsRemainingRows) {
  LoaderOptions given = options(16);
  given.on_error = OnError::kSkip;
  given.error_rate = 1;
  given.shuffle = false;
  for (int threads : {1, 4}) {
    given.threads = threads;
    Loader loader(numbers(32, {0, 5, 6, 8, 9, 10, 11}), steps({mix(kGroup)}), given);
    const std::optional<Batch> batch = loader.next();
    ASSERT_TRUE(batch);
    ASSERT_EQ(batch->size, 9);
    expect_mixed(*batch, 0, 3);  // 1, 2, 3
    expect_mixed(*batch, 3, 2);  // 4, 7
    expect_mixed(*batch, 5, 4);  // 12 to 15: no record of the third group remained
  }
}

TEST(BatchSteps, ABadRecordEndsTheRunOnRequest) {
  Loader loader(numbers(64, {40}), steps({mix(kGroup)}), options(16));
  EXPECT_EQ(refusal([&] { epoch_rows(loader); }), "HR0799 record 40 is bad");
}

TEST(BatchSteps, AFailureEndsTheRunAtItsBatch) {
  const Spec failing{"MixOpposites", {{"fails", true}}, {}, {}};
  for (OnError on_error : {OnError::kRaise, OnError::kSubstitute, OnError::kSkip}) {
    LoaderOptions given = options(16);
    given.on_error = on_error;
    Loader loader(numbers(64), steps({failing}), given);
    EXPECT_EQ(refusal([&] { loader.next(); }), "HR0797 the mixing failed");
    EXPECT_EQ(refusal([&] { loader.batch(0, 1); }), "HR0797 the mixing failed");
  }
}

TEST(BatchSteps, MayStopInTheMiddleOfAnEpoch) {
  LoaderOptions given = options(32, 4);
  Loader whole(numbers(640), steps({mix(kGroup)}), given);
  const std::vector<Rows> expected = epoch_rows(whole);
  Loader loader(numbers(640), steps({mix(kGroup)}), given);
  for (int taken = 0; taken < 12; ++taken) {
    loader.set_epoch(0);
    for (int i = 0; i < taken; ++i) {
      const std::optional<Batch> batch = loader.next();
      ASSERT_TRUE(batch);
      EXPECT_EQ(rows_of(*batch), expected[size_t(i)]);
    }
  }
  loader.close();
}

TEST(BatchSteps, DevicesGetTheSameBatches) {
  Loader alone(numbers(300), steps({mix(kGroup)}), options(32));
  LoaderOptions given = options(32);
  auto device = std::make_shared<SimulatedDevice>(7);
  given.device = device;
  auto loader = std::make_shared<Loader>(numbers(300), steps({mix(kGroup)}), given);
  auto batches = std::make_shared<SharedBatches>(loader, 1, 2);
  Prefetcher prefetcher(device, PrefetchOptions{.depth = 2});
  prefetcher.start(std::make_unique<LoaderFeed>(batches, 0));
  while (auto batch = alone.next()) {
    std::optional<DeviceBatch> there = prefetcher.next();
    ASSERT_TRUE(there);
    const DeviceTensor& values = there->tensors[0];
    values.lease->wait_on_host();
    EXPECT_EQ(std::memcmp(values.view.data, (*batch)["value"].view.data, values.view.dense_bytes()),
              0);
  }
  EXPECT_FALSE(prefetcher.next());
}

TEST(BatchSteps, RunOnResidentRecordsToo) {
  Loader streamed(numbers(150), steps({mix(kGroup)}), options(16));
  LoaderOptions given = options(16);
  given.resident = ResidentUse::kOn;
  Loader resident(numbers(150), steps({mix(kGroup)}), given);
  EXPECT_EQ(epoch_rows(resident), epoch_rows(streamed));
  given.shuffle = false;
  given.view = true;
  EXPECT_EQ(refusal([&] { Loader(numbers(150), steps({mix(kGroup)}), given); }).substr(0, 6),
            "HR0892");
}

TEST(BatchSteps, AreSkippedIfTheirFieldIsUnused) {
  LoaderOptions given = options(15);  // not a multiple of the group, which does not matter here
  given.plan.fields = {"label"};
  Loader loader(numbers(60), steps({mix(kGroup)}), given);
  EXPECT_EQ(loader.plan().batch_steps().size(), 0u);
  EXPECT_EQ(epoch_rows(loader).size(), 4u);
}

// A group uses one of them, however the loader is run.
TEST(BatchSteps, AreChosenByGroup) {
  const Spec choice{"RandomChoice",
                    {{"transforms", std::vector<Branch>{{"", {mix(2)}}, {"", {mix(kGroup)}}}}},
                    {},
                    {}};
  const Spec sometimes{
      "RandomApply", {{"p", 0.7}, {"transforms", std::vector<Branch>{{"", {choice}}}}}, {}, {}};
  const auto source = [](ReadStyle style) { return numbers(150, {}, style); };
  expect_one_result(source, steps({sometimes}), options(32));
  Loader plain(numbers(150), {}, options(32)),
      chosen(numbers(150), steps({sometimes}), options(32));
  int groups = 0, untouched = 0;
  while (auto batch = chosen.next()) {
    const std::optional<Batch> before = plain.next();
    for (int64_t row = 0; row < batch->size; row += kGroup, ++groups) {
      untouched += value_of(*batch, row) == value_of(*before, row);
    }
  }
  EXPECT_EQ(groups, 38);
  EXPECT_GT(untouched, 3);  // 11.4 of them
  EXPECT_LT(untouched, 20);
}

TEST(BatchSteps, AreShownInThePlan) {
  Loader loader(numbers(60), steps({mix(kGroup)}), options(16));
  const std::string text = loader.plan().text();
  EXPECT_NE(text.find("MixOpposites(group=4)"), std::string::npos) << text;
  EXPECT_NE(text.find("groups of 4"), std::string::npos) << text;
}

TEST(BatchSteps, AreRejectedIfUnsupported) {
  const auto refused = [](std::vector<Spec> transforms, LoaderOptions given) {
    return refusal([&] { Loader(numbers(150), steps(std::move(transforms)), given); });
  };
  EXPECT_EQ(refused({mix(kGroup)}, options(18)),
            "HR0723 a batch of 18 records is not a multiple of the 4 that a transform mixes");
  for (int64_t group : {int64_t{0}, int64_t{-4}, int64_t{1} << 62}) {
    EXPECT_EQ(refused({mix(group)}, options(16)).substr(0, 26), "HR0130 MixOpposites(group=");
  }
  LoaderOptions rank = options(6);
  rank.world_size = 2;
  EXPECT_EQ(refused({mix(kGroup)}, rank),
            "HR0723 a batch of 6 records per rank is not a multiple of the 4 that a transform "
            "mixes");
  LoaderOptions few = options(12);
  few.world_size = 4;  // 6 records are left: two groups for four ranks
  EXPECT_EQ(refused({mix(kGroup)}, few).substr(0, 49),
            "HR0721 6 records, in groups of 4, remain for 4 ra");
  EXPECT_EQ(refused({mix(kGroup), add_partners(1)}, options(16)).substr(0, 74),
            "HR0130 AddPartners(count=1) comes after MixOpposites(group=4), which is ap");
  EXPECT_EQ(refused({mix(kGroup), unchanged()}, options(16)).substr(0, 63),
            "HR0130 unchanged(value) comes after MixOpposites(group=4), whic");
  class Ragged final : public Source {
   public:
    int64_t size() const override { return 64; }
    const Schema& schema() const override { return schema_; }
    ReadStyle read_style() const override { return ReadStyle::kMemory; }
    void read(std::span<const int64_t>, const std::vector<bool>&,
              std::span<RecordData>) const override {}
    std::string key(int64_t) const override { return {}; }
    uint64_t fingerprint() const override { return 1; }
    std::string description() const override { return "ragged"; }

   private:
    const Schema schema_{
        {.name = "value", .kind = FieldKind::kTensor, .dtype = DType::kInt64, .shape = {-1}}};
  };
  LoaderOptions lists = options(16);
  lists.plan.ragged = headrace::Ragged::kList;
  EXPECT_EQ(refusal([&] { Loader(std::make_shared<Ragged>(), steps({mix(kGroup)}), lists); }),
            "HR0130 MixOpposites(group=4) mixes rows of one shape, but \"value\" is delivered as a "
            "list");
  const auto sometimes = [](std::vector<Spec> list) {
    return Spec{
        "RandomApply", {{"p", 0.5}, {"transforms", std::vector<Branch>{{"", list}}}}, {}, {}};
  };
  EXPECT_EQ(refused({sometimes({unchanged(), mix(kGroup)})}, options(16)),
            "HR0130 RandomApply(p=0.5) has MixOpposites(group=4), a batch transform, "
            "next to per-record transforms");
  const Spec in_any_order{
      "RandomOrder", {{"transforms", std::vector<Branch>{{"", {mix(2)}}, {"", {mix(4)}}}}}, {}, {}};
  EXPECT_EQ(refused({in_any_order}, options(16)),
            "HR0130 MixOpposites(group=2) cannot be in a list that is shuffled for each "
            "record");
}

}  // namespace
}  // namespace headrace::scopes_test
