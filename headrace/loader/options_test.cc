// SPDX-License-Identifier: Apache-2.0
#include "headrace/loader/options.h"

#include <gtest/gtest.h>

#include <set>

namespace headrace {
namespace {

TEST(LoaderOptionsTest, MissingOptionsGetTheDefaultsOfTheStruct) {
  const LoaderOptions made = loader_options_from({}), plain;
  EXPECT_EQ(made.batch_size, plain.batch_size);
  EXPECT_EQ(made.threads, plain.threads);
  EXPECT_EQ(made.memory_limit, plain.memory_limit);
  EXPECT_EQ(made.resident, plain.resident);
  EXPECT_EQ(made.fraction, plain.fraction);
  EXPECT_EQ(made.resident_on_device, plain.resident_on_device);
  EXPECT_EQ(made.on_error, plain.on_error);
  EXPECT_EQ(made.error_budget, plain.error_budget);
  EXPECT_EQ(made.error_rate, plain.error_rate);
  EXPECT_EQ(made.last_batch, plain.last_batch);
  EXPECT_EQ(made.world_size, plain.world_size);
  EXPECT_EQ(made.row_index, plain.row_index);
  EXPECT_EQ(made.patience_seconds, plain.patience_seconds);
  EXPECT_EQ(made.plan.ragged, plain.plan.ragged);
  EXPECT_EQ(made.plan.pad_multiple, plain.plan.pad_multiple);
  EXPECT_EQ(made.plan.pad_values, plain.plan.pad_values);
  EXPECT_EQ(made.plan.sixteen_bit, plain.plan.sixteen_bit);
  EXPECT_EQ(made.plan.limits.max_pixels, plain.plan.limits.max_pixels);
}

TEST(LoaderOptionsTest, ValuesReachTheEngine) {
  const LoaderOptions made = loader_options_from({{"batch_size", int64_t{7}},
                                                  {"seed", int64_t{-1}},
                                                  {"last_batch", std::string("pad")},
                                                  {"damaged", std::string("repair")},
                                                  {"sixteen_bit", std::string("clip")},
                                                  {"ragged", std::string("list")},
                                                  {"index", std::string("auto")},
                                                  {"resident", std::string("on")},
                                                  {"patience", 2.5},
                                                  {"max_pixels", int64_t{99}}});
  EXPECT_EQ(made.batch_size, 7);
  EXPECT_EQ(made.seed, UINT64_MAX);
  EXPECT_EQ(made.last_batch, LastBatch::kPad);
  EXPECT_TRUE(made.plan.repair);
  EXPECT_EQ(made.plan.sixteen_bit, SixteenBit::kClip);
  EXPECT_EQ(made.plan.ragged, Ragged::kList);
  EXPECT_EQ(made.row_index, RowIndexUse::kAuto);
  EXPECT_EQ(made.resident, ResidentUse::kOn);
  EXPECT_EQ(made.patience_seconds, 2.5);
  EXPECT_EQ(made.plan.limits.max_pixels, 99);
}

TEST(LoaderOptionsTest, InvalidNamesAndChoicesAreRejected) {
  EXPECT_THROW(loader_options_from({{"batch_sise", int64_t{7}}}), Exception);
  EXPECT_THROW(loader_options_from({{"on_error", std::string("ignore")}}), Exception);
  EXPECT_THROW(loader_options_from({{"threads", int64_t{0}}}), Exception);
}

TEST(LoaderOptionsTest, EachOptionHasAUniqueNameAndADescription) {
  std::set<std::string_view> names;
  for (const LoaderOption& option : loader_options()) {
    EXPECT_TRUE(names.insert(option.param.name).second) << option.param.name;
    EXPECT_EQ(option.group.empty(), option.param.doc.empty()) << option.param.name;
  }
}

}  // namespace
}  // namespace headrace
