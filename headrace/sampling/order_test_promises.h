// SPDX-License-Identifier: Apache-2.0
// Checks of the contract of every order, for the tests of samplers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "headrace/sampling/sampler_record.h"

namespace headrace {

// An order of `records` records by its record, made from plain data.
inline SamplerPtr order_of_record(const SamplerRecord& record, int64_t records,
                                  std::map<std::string, ParamValue> given) {
  SamplerData data{.records = records, .global_batch = 8};
  data.order = shuffled(records);
  for (int64_t end = 4; end < records + 4; end += 4) {
    data.block_ends.push_back(std::min(end, records));
  }
  for (int64_t i = 0; i < records; ++i) {
    data.weights.push_back(double(i % 3) + 0.5);
    data.integers.push_back(record.per_record == PerRecord::kIndices ? i : 1 + i * i % 5);
  }
  const Arguments arguments(record.name, record.params, given);
  if (record.check) record.check(arguments);
  return record.make(std::move(data), arguments);
}

// Records of all batches of an epoch, concatenated.
inline std::vector<int64_t> records_of_epoch(const Sampler& order, uint64_t seed, uint64_t epoch) {
  std::vector<int64_t> all(size_t(order.size())), out;
  order.indices(seed, epoch, 0, all);
  const auto sizes = order.batch_sizes();
  if (sizes.empty()) return all;
  const int64_t largest = std::ranges::max(sizes);
  for (size_t batch = 0; batch < sizes.size(); ++batch) {
    const auto begin = all.begin() + int64_t(batch) * largest;
    out.insert(out.end(), begin, begin + sizes[batch]);
  }
  return out;
}

// It is a function of seed, epoch and position, and returns valid records; batches whose sizes it
// decides are not empty.
inline void expect_order_promises(const Sampler& order, int64_t records) {
  ASSERT_GT(order.size(), 0);
  for (const uint64_t epoch : {0, 1, 0}) {
    std::vector<int64_t> together(size_t(order.size()));
    order.indices(7, epoch, 0, together);
    for (int64_t position = order.size() - 1; position >= 0; --position) {
      const int64_t index = order.index(7, epoch, position);
      EXPECT_EQ(index, together[size_t(position)]) << position;
      EXPECT_TRUE(index >= 0 && index < records) << index;
    }
  }
  const auto sizes = order.batch_sizes();
  for (const int64_t size : sizes) EXPECT_GT(size, 0);
  if (!sizes.empty()) {
    EXPECT_EQ(order.size(), std::ssize(sizes) * std::ranges::max(sizes));
  }
  EXPECT_FALSE(order.description().empty());
}

// Every record appears once in an epoch.
inline void expect_each_record_once(const Sampler& order, int64_t records) {
  std::vector<int64_t> all(static_cast<size_t>(records));
  std::iota(all.begin(), all.end(), 0);
  for (const uint64_t epoch : {0, 1}) {
    std::vector<int64_t> drawn = records_of_epoch(order, 7, epoch);
    std::ranges::sort(drawn);
    EXPECT_EQ(drawn, all) << epoch;
  }
}

}  // namespace headrace
