// SPDX-License-Identifier: Apache-2.0
// Both makers fulfill the same contract: for requests in any order, a batch number always gives the
// same batch.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "headrace/loader/resident_batches.h"
#include "headrace/loader/streaming_batches.h"
#include "headrace/sources/columns/columns.h"

namespace headrace {
namespace batch_maker_test {

constexpr int64_t kRecords = 23, kRows = 5;
constexpr size_t kMemory = 64 << 20;

class BatchMakerTest : public testing::TestWithParam<bool> {
 protected:
  BatchMakerTest() : numbers_(kRecords) {
    std::iota(numbers_.begin(), numbers_.end(), 100);
    source_ = records({{.name = "number",
                        .values = ArrayColumn{numbers_.data(), DType::kInt64, kRecords, {}, {}}}});
    plan_ = make_plan(source_->schema(), {}, {});
    sampler_ = sequential(kRecords);
    const EngineOptions engine{
        .task = {.source = source_, .plan = plan_, .sampler = sampler_, .layout = layout_},
        .threads = 2,
        .memory_limit = kMemory,
        .warn = {}};
    if (!GetParam()) {
      maker_ = std::make_unique<StreamingBatches>(engine, bad_records_, "off");
      return;
    }
    auto residence = std::make_unique<Residence>(ResidenceInputs{.use = ResidentUse::kOn,
                                                                 .source = source_,
                                                                 .pipeline = {},
                                                                 .plan = plan_,
                                                                 .sampler = sampler_,
                                                                 .layout = layout_,
                                                                 .memory_limit = kMemory});
    maker_ = std::make_unique<ResidentBatches>(std::move(residence), engine, bad_records_);
  }

  static std::vector<int64_t> numbers_in(const Batch& batch) {
    const auto* values = static_cast<const int64_t*>(batch.fields.at(0).view.data);
    return {values, values + batch.size};
  }
  static std::vector<int64_t> expected(int64_t batch) {
    std::vector<int64_t> out;
    for (int64_t i = batch * kRows; i < std::min(kRecords, (batch + 1) * kRows); ++i) {
      out.push_back(100 + i);
    }
    return out;
  }

  std::vector<int64_t> numbers_;
  SourcePtr source_;
  std::shared_ptr<const Plan> plan_;
  SamplerPtr sampler_;
  BatchLayout layout_{kRecords, kRows, 0, 1, LastBatch::kKeep};
  BadRecords bad_records_{1000, 0.01, ""};
  std::unique_ptr<BatchMaker> maker_;
};

TEST_P(BatchMakerTest, GivesAnEpochFromItsStartPosition) {
  for (const int64_t first : {int64_t{0}, int64_t{3}, int64_t{4}}) {
    maker_->start(0, first, {});
    for (int64_t batch = first; batch < layout_.batches(); ++batch) {
      std::optional<Batch> made = maker_->next({});
      ASSERT_TRUE(made);
      EXPECT_EQ(made->index, batch);
      EXPECT_EQ(numbers_in(*made), expected(batch));
    }
    EXPECT_FALSE(maker_->next({}));
  }
}

TEST_P(BatchMakerTest, ABatchRequestedByNumberDoesNotAffectTheIteration) {
  maker_->start(0, 1, {});
  EXPECT_EQ(numbers_in(*maker_->next({})), expected(1));
  EXPECT_EQ(numbers_in(maker_->make(0, 4)), expected(4));
  EXPECT_EQ(numbers_in(*maker_->next({})), expected(2));
}

TEST_P(BatchMakerTest, CountersContinueAfterARestart) {
  maker_->start(0, 0, {});
  EXPECT_EQ(numbers_in(*maker_->next({})), expected(0));
  maker_->stop({});
  maker_->start(7, 2, {});
  const std::optional<Batch> made = maker_->next({});
  EXPECT_EQ(made->epoch, 7);
  EXPECT_EQ(numbers_in(*made), expected(2));
  EXPECT_EQ(maker_->stats().batches, 2);
  EXPECT_TRUE(maker_->delivers());
}

TEST_P(BatchMakerTest, AHeldBatchOutlivesItsMaker) {
  maker_->start(0, 0, {});
  const std::optional<Batch> kept = maker_->next({});
  maker_->close();
  maker_.reset();
  EXPECT_EQ(numbers_in(*kept), expected(0));
}

INSTANTIATE_TEST_SUITE_P(, BatchMakerTest, testing::Bool(), [](const auto& kind) {
  return std::string(kind.param ? "Resident" : "Streaming");
});

}  // namespace batch_maker_test
}  // namespace headrace
