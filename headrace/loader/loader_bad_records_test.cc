// SPDX-License-Identifier: Apache-2.0
// How a loader treats bad records and outages: policies, budget, quarantine.
#include "headrace/loader/loader_test_numbers.h"

namespace headrace {
namespace {

TEST(LoaderBadRecords, SubstitutesReplaceOnlyTheBadRow) {
  const std::set<int64_t> bad{5, 6, 7, 42};
  Loader clean(std::make_shared<Numbers>(300), {}, options(16));
  const auto expected = epoch_of(clean);
  LoaderOptions o = options(16);
  o.on_error = OnError::kSubstitute;
  Loader loader(std::make_shared<Numbers>(300, bad), {}, o);
  const auto got = epoch_of(loader);
  ASSERT_EQ(got.size(), expected.size());
  int replaced = 0;
  for (size_t b = 0; b < got.size(); ++b) {
    for (size_t i = 0; i < got[b].size(); ++i) {
      if (bad.contains(expected[b][i] / 3)) {
        EXPECT_FALSE(bad.contains(got[b][i] / 3));
        ++replaced;
      } else {
        EXPECT_EQ(got[b][i], expected[b][i]);
      }
    }
  }
  EXPECT_EQ(replaced, 4);
  const auto list = loader.quarantine();
  ASSERT_EQ(list.size(), 4u);
  for (const BadRecord& record : list) {
    EXPECT_TRUE(bad.contains(record.record));
    EXPECT_NE(record.action.find("substituted by record"), std::string::npos);
  }
}

TEST(LoaderBadRecords, SkipShortensTheBatchAndDeliversTheRest) {
  const std::set<int64_t> bad{0, 9, 10, 11};
  LoaderOptions o = options(4);
  o.on_error = OnError::kSkip;
  o.shuffle = false;
  Loader loader(std::make_shared<Numbers>(16, bad), {}, o);
  const std::vector<std::vector<int64_t>> expected{
      {3, 6, 9}, {12, 15, 18, 21}, {24}, {36, 39, 42, 45}};
  EXPECT_EQ(epoch_of(loader), expected);
}

TEST(LoaderBadRecords, ABatchOfOnlyBadRecordsIsSkipped) {
  LoaderOptions o = options(1);
  o.on_error = OnError::kSkip;
  o.shuffle = false;
  Loader loader(std::make_shared<Numbers>(3, std::set<int64_t>{1}), {}, o);
  EXPECT_EQ(epoch_of(loader), (std::vector<std::vector<int64_t>>{{0}, {6}}));
}

TEST(LoaderBadRecords, RaisesAtTheBatchWithTheBadRecord) {
  LoaderOptions o = options(10);
  o.shuffle = false;
  Loader loader(std::make_shared<Numbers>(100, std::set<int64_t>{37, 35}), {}, o);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(loader.next());
  for (int attempt = 0; attempt < 2; ++attempt) {  // and again: the batch was not received
    try {
      loader.next();
      FAIL();
    } catch (const Exception& e) {
      EXPECT_EQ(e.error().code->id, "HR0799");
      EXPECT_EQ(e.error().where.record, 35);
      EXPECT_EQ(e.error().where.file, "number 35");
    }
    EXPECT_EQ(loader.state().batch, 3);
  }
}

TEST(LoaderBadRecords, AStorageOutageEndsTheRunUnderAnyPolicy) {
  auto source = std::make_shared<Numbers>(100, std::set<int64_t>{37});
  source->outage = true;
  LoaderOptions o = options(10);
  o.on_error = OnError::kSubstitute;
  Loader loader(source, {}, o);
  EXPECT_THROW(epoch_of(loader), Exception);
  EXPECT_TRUE(loader.quarantine().empty());
}

TEST(LoaderBadRecords, TheBudgetEndsTheRun) {
  std::set<int64_t> bad;
  for (int64_t i = 0; i < 100; i += 10) bad.insert(i);
  LoaderOptions o = options(10);
  o.shuffle = false;
  o.on_error = OnError::kSubstitute;
  o.error_budget = 4;
  Loader loader(std::make_shared<Numbers>(100, bad), {}, o);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(loader.next());
  try {
    loader.next();
    FAIL();
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().code->id, "HR0731");
  }
}

TEST(LoaderBadRecords, NoSubstituteIsFoundIfEveryRecordIsBad) {
  LoaderOptions o = options(2);
  o.on_error = OnError::kSubstitute;
  Loader loader(std::make_shared<Numbers>(2, std::set<int64_t>{0, 1}), {}, o);
  EXPECT_THROW(loader.next(), Exception);
}

}  // namespace
}  // namespace headrace
