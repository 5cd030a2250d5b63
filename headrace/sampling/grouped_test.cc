// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "headrace/sampling/order_test_promises.h"

namespace headrace {
namespace {

const std::vector<int64_t> kKeysOfGroups = {7, 7, 7, 7, 7, 2, 2, 2};  // 5 of one, 3 of the other

SamplerPtr grouped_of(std::vector<int64_t> keys, std::vector<int64_t> sizes, ParamValue last) {
  const SamplerRecord& record = *Registry<SamplerRecord>::find("grouped");
  const Arguments arguments("grouped", record.params,
                            {{"batch_size", std::move(sizes)}, {"last", std::move(last)}});
  const auto records = std::ssize(keys);
  return record.make({.records = records, .integers = std::move(keys)}, arguments);
}

// Sizes of each key's batches; every batch has one key.
std::map<int64_t, std::multiset<int64_t>> batches_by_key(const Sampler& order, uint64_t epoch) {
  std::map<int64_t, std::multiset<int64_t>> out;
  const std::vector<int64_t> all = records_of_epoch(order, 1, epoch);
  size_t at = 0;
  for (const int64_t size : order.batch_sizes()) {
    std::set<int64_t> keys;
    for (int64_t i = 0; i < size; ++i) keys.insert(kKeysOfGroups[size_t(all[at++])]);
    EXPECT_EQ(keys.size(), 1u);
    out[*keys.begin()].insert(size);
  }
  return out;
}

using Sizes = std::multiset<int64_t>;

TEST(Grouped, BatchesOfAKeyDifferInSizeByOneAtMost) {
  const SamplerPtr order = grouped_of(kKeysOfGroups, {4}, std::string("keep"));
  expect_order_promises(*order, 8);
  expect_each_record_once(*order, 8);
  const auto batches = batches_by_key(*order, 0);
  EXPECT_EQ(batches.at(7), (Sizes{2, 3}));
  EXPECT_EQ(batches.at(2), (Sizes{3}));
}

TEST(Grouped, DroppedRecordsDifferBetweenEpochs) {
  const SamplerPtr order = grouped_of(kKeysOfGroups, {2}, std::string("drop"));
  EXPECT_NE(order->description().find("2 records dropped"), std::string::npos);
  std::set<int64_t> left_out;
  for (uint64_t epoch = 0; epoch < 50; ++epoch) {
    const auto batches = batches_by_key(*order, epoch);
    EXPECT_EQ(batches.at(7), (Sizes{2, 2}));
    EXPECT_EQ(batches.at(2), (Sizes{2}));
    const std::vector<int64_t> drawn = records_of_epoch(*order, 1, epoch);
    const std::set<int64_t> met(drawn.begin(), drawn.end());
    EXPECT_EQ(met.size(), 6u);
    for (int64_t i = 0; i < 8; ++i) {
      if (!met.contains(i)) left_out.insert(i);
    }
  }
  EXPECT_EQ(left_out.size(), 8u);
}

TEST(Grouped, PaddedBatchesAreFullAndHaveEveryRecord) {
  const SamplerPtr order = grouped_of(kKeysOfGroups, {4}, std::string("pad"));
  const auto batches = batches_by_key(*order, 3);
  EXPECT_EQ(batches.at(7), (Sizes{4, 4}));
  EXPECT_EQ(batches.at(2), (Sizes{4}));
  const std::vector<int64_t> drawn = records_of_epoch(*order, 1, 3);
  EXPECT_EQ(std::set<int64_t>(drawn.begin(), drawn.end()).size(), 8u);
}

TEST(Grouped, AKeyMayHaveItsOwnBatchSize) {
  const auto batches = batches_by_key(*grouped_of(kKeysOfGroups, {1, 5}, std::string("keep")), 0);
  EXPECT_EQ(batches.at(7), (Sizes{5}));
  EXPECT_EQ(batches.at(2), (Sizes{1, 1, 1}));
  EXPECT_THROW(grouped_of(kKeysOfGroups, {1, 2, 3}, std::string("keep")), Exception);
}

TEST(Grouped, AKeyMayHaveItsOwnRemainder) {
  const auto each = [](const std::string& first, const std::string& second) {
    return grouped_of(kKeysOfGroups, {2}, std::vector<std::string>{first, second});
  };
  const SamplerPtr order = each("drop", "pad");  // of the keys 2 and 7
  const auto batches = batches_by_key(*order, 0);
  EXPECT_EQ(batches.at(2), (Sizes{2}));
  EXPECT_EQ(batches.at(7), (Sizes{2, 2, 2}));
  EXPECT_NE(order->description().find("1 records dropped"), std::string::npos);
  EXPECT_NE(order->description().find("1 records twice"), std::string::npos);
  EXPECT_EQ(batches_by_key(*each("pad", "keep"), 0).at(7), (Sizes{1, 2, 2}));
  EXPECT_NE(each("pad", "keep")->fingerprint(), each("keep", "pad")->fingerprint());
  EXPECT_EQ(each("pad", "pad")->batch_sizes().size(),
            grouped_of(kKeysOfGroups, {2}, std::string("pad"))->batch_sizes().size());
  EXPECT_THROW(grouped_of(kKeysOfGroups, {2}, std::vector<std::string>(3, "keep")), Exception);
  EXPECT_THROW(each("keep", "wrap"), Exception);
}

TEST(Grouped, IsRejectedIfNoGroupFillsABatch) {
  try {
    grouped_of(kKeysOfGroups, {6}, std::string("drop"));
    FAIL() << "it was taken";
  } catch (const Exception& raised) {
    EXPECT_NE(std::string(raised.what()).find("drops all batches"), std::string::npos);
  }
}

}  // namespace
}  // namespace headrace
