// SPDX-License-Identifier: Apache-2.0
// Every registered sampler fulfills the contract that loaders rely on.
#include "headrace/sampling/sampler_record.h"

#include <gtest/gtest.h>

#include "headrace/sampling/order_test_promises.h"

namespace headrace {
namespace {

constexpr int64_t kRecords = 30;

// A value for each argument without a default; finite epochs.
std::map<std::string, ParamValue> min_arguments(const SamplerRecord& record) {
  std::map<std::string, ParamValue> out;
  for (const Param& param : record.params) {
    const std::string name(param.name);
    if (name == "num_samples") out[name] = int64_t{12};
    if (!param.required) continue;
    if (param.type == ParamType::kInt || param.type == ParamType::kInts) out[name] = int64_t{8};
    if (param.type == ParamType::kFloat || param.type == ParamType::kFloats) out[name] = 8.0;
  }
  return out;
}

TEST(SamplerRecords, FulfillTheContractOfOrders) {
  for (const SamplerRecord* record : Registry<SamplerRecord>::all()) {
    SCOPED_TRACE(record->name);
    const SamplerPtr order = order_of_record(*record, kRecords, min_arguments(*record));
    expect_order_promises(*order, kRecords);
    const SamplerPtr again = order_of_record(*record, kRecords, min_arguments(*record));
    EXPECT_EQ(order->fingerprint(), again->fingerprint());
    const SamplerPtr other = order_of_record(*record, kRecords - 1, min_arguments(*record));
    EXPECT_NE(order->fingerprint(), other->fingerprint());
  }
}

TEST(SamplerRecords, DescribeThemselves) {
  EXPECT_GE(Registry<SamplerRecord>::all().size(), 5u);
  for (const SamplerRecord* record : Registry<SamplerRecord>::all()) {
    SCOPED_TRACE(record->name);
    EXPECT_FALSE(record->doc.empty());
    EXPECT_TRUE(record->example.starts_with("hr.sampling." + std::string(record->name) + "("));
    EXPECT_EQ(record->given.doc.empty(), record->per_record == PerRecord::kNothing);
    for (const Param& param : record->params) EXPECT_FALSE(param.doc.empty()) << param.name;
  }
}

TEST(SamplerRecords, RejectInvalidArgumentsWithoutASource) {
  const SamplerRecord& budget = *Registry<SamplerRecord>::find("budget");
  for (const double total : {0.0, -1.0}) {
    EXPECT_THROW(order_of_record(budget, kRecords, {{"total", total}}), Exception);
  }
  EXPECT_THROW(order_of_record(budget, kRecords, {}), Exception);
  EXPECT_THROW(order_of_record(budget, kRecords, {{"total", 8.0}, {"num_buckets", int64_t{0}}}),
               Exception);
}

TEST(SamplerRecords, CountABudgetInFractionsOfItsUnit) {
  const SamplerRecord& budget = *Registry<SamplerRecord>::find("budget");
  const Arguments arguments("budget", budget.params, {{"total", 2.5}});
  const auto made = [&](int64_t parts, std::vector<int64_t> lengths) {
    return budget.make({.records = 2, .integers = std::move(lengths), .parts = parts}, arguments);
  };
  EXPECT_EQ(made(1, {1, 1})->batch_sizes().size(), 1u);  // 2 of 2.5, which is rounded down to 2
  EXPECT_EQ(made(10, {12, 12})->batch_sizes().size(), 1u);
  EXPECT_EQ(made(10, {13, 13})->batch_sizes().size(), 2u);
}

}  // namespace
}  // namespace headrace
