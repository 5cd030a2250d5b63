// SPDX-License-Identifier: Apache-2.0
// Steps that take other records in addition to the row's record: the choice is a function of seed,
// epoch and position; these records are read, counted and checked like the row's.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>

#include "headrace/loader/loader_test_walls.h"

namespace headrace::scopes_test {
namespace loader_partners_test {

// Numbers: a row's own record by its label, and the sum of its partners.
struct Sum {
  int64_t own, partners;
};
std::vector<Sum> sums_of(const Batch& batch) {
  std::vector<Sum> out;
  const std::vector<int64_t> labels = labels_of(batch);
  const auto* values = static_cast<const int64_t*>(batch["value"].view.data);
  for (int64_t row = 0; row < batch.size; ++row) {
    const int64_t own = labels[size_t(row)] / 3;
    const int64_t* const all = values + row * Numbers::kWidth;
    EXPECT_EQ(all[0], all[Numbers::kWidth - 1]);
    out.push_back({own, all[0] - AddPartners::kOwn * own});
  }
  return out;
}

TEST(Partners, AreRecordsOfTheEpochDrawnForEachPosition) {
  Loader loader(numbers(100), steps({add_partners(1)}), options(10));
  std::set<int64_t> first, second;
  for (auto* seen : {&first, &second}) {
    while (auto batch = loader.next()) {
      for (const Sum& sum : sums_of(*batch)) {
        EXPECT_GE(sum.partners, 0);
        EXPECT_LT(sum.partners, 100);
        seen->insert(sum.partners * 100 + sum.own);
        EXPECT_NE(sum.own, sum.partners);
      }
    }
  }
  EXPECT_NE(first, second) << "each epoch has pairs of its own";
}

TEST(Partners, AreAllOtherRecordsOfASmallEpoch) {
  for (const int partners : {1, 3, 4}) {
    const int64_t records = partners + 1, all = partners * records / 2;
    Loader loader(numbers(records), steps({add_partners(partners)}), options(1));
    for (int epoch = 0; epoch < 20; ++epoch) {
      while (auto batch = loader.next()) {
        for (const Sum& sum : sums_of(*batch)) EXPECT_EQ(sum.partners, all - sum.own) << records;
      }
    }
  }
  Loader too_few(numbers(2), steps({add_partners(3)}), options(2));
  EXPECT_TRUE(too_few.next());
}

TEST(Partners, AreUniform) {
  std::map<std::pair<int64_t, int64_t>, int> met;
  Loader loader(numbers(6), steps({add_partners(1)}), options(3));
  for (int epoch = 0; epoch < 1000; ++epoch) {
    while (auto batch = loader.next()) {
      for (const Sum& sum : sums_of(*batch)) ++met[{sum.own, sum.partners}];
    }
  }
  EXPECT_EQ(met.size(), 30u);
  for (const auto& [pair, times] : met) EXPECT_NEAR(times, 200, 65) << pair.first;
}

TEST(Partners, GiveTheSameResultEverywhere) {
  const auto source = [](ReadStyle style) { return numbers(150, {}, style); };
  expect_one_result(source, steps({add_partners(1)}), options(32));
  expect_one_result(source, steps({add_partners(3), mix(4)}), options(32));
}

TEST(Partners, WorkWithBatchStepsAndAPythonStepInBetween) {
  for (OnError on_error : {OnError::kRaise, OnError::kSubstitute}) {
    LoaderOptions given = options(32);
    given.on_error = on_error;
    given.error_rate = 1;
    const std::set<int64_t> bad =
        on_error == OnError::kRaise ? std::set<int64_t>{} : std::set<int64_t>{5, 6, 77};
    const auto source = [&](ReadStyle style) { return numbers(150, bad, style); };
    expect_one_result(source, steps({add_partners(2), unchanged(), mix(4)}), given);
    Loader with(source(ReadStyle::kFiles), steps({add_partners(2), unchanged(), mix(4)}), given);
    Loader without(source(ReadStyle::kFiles), steps({add_partners(2), mix(4)}), given);
    EXPECT_EQ(epoch_rows(with), epoch_rows(without));
  }
}

TEST(Partners, IfBadMakeTheRowBad) {
  const std::set<int64_t> bad = {7, 20, 33, 90};
  for (ReadStyle style : {ReadStyle::kMemory, ReadStyle::kFiles, ReadStyle::kPython}) {
    Loader raising(numbers(100, bad, style), steps({add_partners(2)}), options(10));
    const std::string said = refusal([&] { epoch_rows(raising); });
    EXPECT_EQ(said.substr(0, 14), "HR0799 record ") << said;
    LoaderOptions given = options(10);
    given.on_error = OnError::kSkip;
    given.error_rate = 1;
    Loader skipping(numbers(100, bad, style), steps({add_partners(2)}), given);
    int64_t left = 0;
    while (auto batch = skipping.next()) left += batch->size;
    EXPECT_EQ(left + skipping.stats().bad_records, 100);
    EXPECT_GT(skipping.stats().bad_records, 4) << "rows of good records with a bad partner";
    for (const BadRecord& record : skipping.quarantine()) {
      EXPECT_TRUE(bad.contains(record.record)) << "the partner is blamed, not the row's record";
    }
  }
}

TEST(Partners, OfASubstituteAreRedrawn) {
  LoaderOptions given = options(32);
  given.on_error = OnError::kSubstitute;
  given.error_rate = 1;
  std::set<int64_t> bad;
  for (int64_t i = 0; i < 150; i += 3) bad.insert(i);
  const auto source = [&](ReadStyle style) { return numbers(150, bad, style); };
  expect_one_result(source, steps({add_partners(2)}), given);
  Loader loader(source(ReadStyle::kFiles), steps({add_partners(1)}), given);
  while (auto batch = loader.next()) {
    for (const Sum& sum : sums_of(*batch)) {
      EXPECT_FALSE(bad.contains(sum.own));
      EXPECT_FALSE(bad.contains(sum.partners));
    }
  }
}

TEST(Partners, AreReadOnceForEachRow) {
  class Counted final : public Source {
   public:
    int64_t size() const override { return numbers_.size(); }
    const Schema& schema() const override { return numbers_.schema(); }
    ReadStyle read_style() const override { return ReadStyle::kFiles; }
    void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
              std::span<RecordData> out) const override {
      reads += std::ssize(indices);
      numbers_.read(indices, wanted, out);
    }
    std::string key(int64_t index) const override { return numbers_.key(index); }
    uint64_t fingerprint() const override { return 5; }
    std::string description() const override { return "counted"; }
    mutable std::atomic<int64_t> reads{0};

   private:
    Numbers numbers_{120};
  };
  const auto source = std::make_shared<Counted>();
  LoaderOptions given = options(10, 4);
  Loader loader(source, steps({add_partners(3)}), given);
  epoch_rows(loader);
  EXPECT_EQ(source->reads, 120 * 4);
}

TEST(Partners, MayStopInTheMiddleOfAnEpoch) {
  LoaderOptions given = options(16, 4);
  const SourcePtr source = numbers(640, {}, ReadStyle::kFiles);
  Loader whole(source, steps({add_partners(2)}), given);
  const std::vector<Rows> expected = epoch_rows(whole);
  Loader loader(source, steps({add_partners(2)}), given);
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

TEST(Partners, ImagesStayWithinTheMemoryLimit) {
  const Pipeline pipeline = steps({resize(256), add_partners(3), resize(64)});
  std::vector<Rows> expected;
  for (int threads : {1, 2, 5, 8}) {
    LoaderOptions given = options(16, threads);
    // Memory for eight threads and two batches, and little more: records wait for each other.
    given.memory_limit = size_t{112} << 20;
    Loader loader(std::make_shared<Walls>(96, ReadStyle::kFiles), pipeline, given);
    const std::vector<Rows> rows = epoch_rows(loader);
    ASSERT_EQ(rows.size(), 6u);
    EXPECT_LE(loader.stats().memory_peak, given.memory_limit) << threads;
    if (expected.empty()) expected = rows;
    EXPECT_EQ(rows, expected) << threads;
  }
}

TEST(Partners, ARowTooLargeWithItsPartnersIsRejectedForAnyNumberOfThreads) {
  for (int threads : {1, 4}) {
    LoaderOptions given = options(4, threads);
    given.memory_limit = size_t{72} << 20;
    const Pipeline pipeline = steps({add_partners(40), resize(64)});
    Loader loader(std::make_shared<Walls>(96, ReadStyle::kMemory), pipeline, given);
    EXPECT_EQ(refusal([&] { loader.next(); }).substr(0, 6), "HR0703");
  }
}

TEST(Partners, AreRejectedIfUnavailable) {
  const auto refused = [](std::vector<Spec> transforms) {
    return refusal([&] { Loader(numbers(100), steps(std::move(transforms)), options(10)); });
  };
  EXPECT_EQ(refused({add_partners(1), add_partners(2)}).substr(0, 66),
            "HR0131 AddPartners(count=2) would be the second transform that mix");
  EXPECT_EQ(refused({unchanged(), add_partners(2)}),
            "HR0131 AddPartners(count=2) comes after unchanged(value), a Python transform");
  const Spec sometimes{"RandomApply",
                       {{"p", 0.5}, {"transforms", std::vector<Branch>{{"", {add_partners(1)}}}}},
                       {},
                       {}};
  EXPECT_EQ(refused({sometimes}), "HR0131 AddPartners(count=1) cannot be inside a RandomApply");
}

TEST(Partners, WorkForResidentRecordsToo) {
  Loader streamed(numbers(150), steps({add_partners(2)}), options(16));
  LoaderOptions given = options(16);
  given.resident = ResidentUse::kOn;
  Loader resident(numbers(150), steps({add_partners(2)}), given);
  EXPECT_EQ(epoch_rows(resident), epoch_rows(streamed));
}

}  // namespace loader_partners_test
}  // namespace headrace::scopes_test
