// SPDX-License-Identifier: Apache-2.0
// Partners from earlier positions than the row's: caching them changes no batch.
#include <gtest/gtest.h>

#include <atomic>

#include "headrace/executor/memory/partner_cache.h"
#include "headrace/loader/loader_test_walls.h"

namespace headrace::scopes_test {
namespace {

TEST(NearPartners, GiveTheSameResultEverywhere) {
  const auto source = [](ReadStyle style) { return numbers(150, {}, style); };
  expect_one_result(source, steps({add_partners(1, 1)}), options(32));
  expect_one_result(source, steps({add_partners(3, 20), mix(4)}), options(32));
  expect_one_result(source, steps({add_partners(2, 40), unchanged()}), options(32));
}

TEST(NearPartners, OverAWholeEpochEqualOrdinaryPartners) {
  Loader any(numbers(100), steps({add_partners(3)}), options(10, 3));
  Loader near(numbers(100), steps({add_partners(3, 100)}), options(10, 3));
  EXPECT_EQ(epoch_rows(near), epoch_rows(any));
}

TEST(NearPartners, IfBadMakeOnlyTheirRowBad) {
  for (OnError on_error : {OnError::kSkip, OnError::kSubstitute}) {
    LoaderOptions given = options(32);
    given.on_error = on_error;
    given.error_rate = 1;
    const auto source = [](ReadStyle style) { return numbers(150, {7, 20, 33, 90, 91}, style); };
    if (on_error == OnError::kSubstitute) {
      expect_one_result(source, steps({add_partners(2, 30)}), given);
    }
    Loader one(source(ReadStyle::kFiles), steps({add_partners(2, 30)}), given);
    given.threads = 5;
    Loader five(source(ReadStyle::kFiles), steps({add_partners(2, 30)}), given);
    EXPECT_EQ(epoch_rows(one), epoch_rows(five));
    EXPECT_EQ(one.stats().bad_records, five.stats().bad_records);
    EXPECT_GT(one.stats().bad_records, 5) << "rows of good records with a bad partner";
  }
}

class Counted final : public Source {
 public:
  explicit Counted(SourcePtr source) : source_(std::move(source)) {}
  int64_t size() const override { return source_->size(); }
  const Schema& schema() const override { return source_->schema(); }
  ReadStyle read_style() const override { return ReadStyle::kFiles; }
  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    reads += std::ssize(indices);
    source_->read(indices, wanted, out);
  }
  std::string key(int64_t index) const override { return source_->key(index); }
  uint64_t fingerprint() const override { return 5; }
  std::string description() const override { return "counted"; }
  mutable std::atomic<int64_t> reads{0};

 private:
  const SourcePtr source_;
};

TEST(NearPartners, AreReadAgainOnlyAtTheStartOfTheEpoch) {
  const auto source = std::make_shared<Counted>(numbers(400));
  Loader loader(source, steps({add_partners(3, 16)}), options(10, 1));
  epoch_rows(loader);
  EXPECT_GE(source->reads, 400);
  EXPECT_LE(source->reads, 400 + 15);
}

TEST(NearPartners, ImagesStayWithinTheMemoryLimit) {
  const Pipeline pipeline = steps({resize(256), add_partners(3, 24), resize(64)});
  std::vector<Rows> expected;
  for (size_t mib : {72, 112, 512}) {
    for (int threads : {1, 3}) {
      LoaderOptions given = options(16, threads);
      given.memory_limit = mib << 20;
      Loader loader(std::make_shared<Walls>(96, ReadStyle::kFiles), pipeline, given);
      const std::vector<Rows> rows = epoch_rows(loader);
      EXPECT_LE(loader.stats().memory_peak, given.memory_limit) << threads;
      if (expected.empty()) expected = rows;
      EXPECT_EQ(rows, expected) << threads << " threads, " << mib << " MiB";
    }
  }
}

TEST(NearPartners, MayStopInTheMiddleOfAnEpoch) {
  const SourcePtr source = std::make_shared<Walls>(96, ReadStyle::kFiles);
  const Pipeline pipeline = steps({resize(64), add_partners(2, 10)});
  LoaderOptions given = options(16, 4);
  Loader whole(source, pipeline, given);
  const std::vector<Rows> expected = epoch_rows(whole);
  Loader loader(source, pipeline, given);
  for (int taken = 0; taken < 6; ++taken) {
    loader.set_epoch(0);
    for (int i = 0; i < taken; ++i) EXPECT_EQ(rows_of(*loader.next()), expected[size_t(i)]);
  }
  loader.close();
}

CachedPartner of_bytes(int64_t position, size_t bytes) {
  Record record{.position = position, .fields = {}, .pixels = {}, .partners = {}};
  record.fields.resize(1);
  record.fields[0].own(Buffer(bytes));
  return {std::move(record), 0};
}

TEST(PartnerCache, EvictsTheOldestFirst) {
  PartnerCache kept(50'000);
  for (int64_t position : {3, 1, 2}) kept.keep(0, of_bytes(position, 10'000));
  EXPECT_TRUE(kept.find(0, 1) && kept.find(0, 2) && kept.find(0, 3));
  EXPECT_FALSE(kept.find(1, 1)) << "another epoch's";
  const size_t held = kept.held_bytes();
  kept.keep(0, of_bytes(2, 10'000));
  EXPECT_EQ(kept.held_bytes(), held) << "it is there";
  kept.keep(0, of_bytes(0, 40'000));
  EXPECT_FALSE(kept.find(0, 0)) << "those that follow it stay";
  const auto first = kept.find(0, 1);
  kept.keep(0, of_bytes(4, 25'000));
  EXPECT_TRUE(!kept.find(0, 1) && kept.find(0, 4));
  EXPECT_EQ(first->record.fields[0].bytes.size(), 10'000u) << "whoever has it keeps it";
  EXPECT_LE(kept.held_bytes(), 50'000u);
  kept.keep(1, of_bytes(0, 100'000));
  EXPECT_TRUE(kept.find(0, 4)) << "what never fits drops nobody";
  kept.clear();
  EXPECT_FALSE(kept.find(0, 4));
  EXPECT_EQ(kept.held_bytes(), 0u);
}

}  // namespace
}  // namespace headrace::scopes_test
