// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/sampling/order_test_promises.h"

namespace headrace {
namespace {

const SamplerRecord& template_batches() {
  return *Registry<SamplerRecord>::find("template_batches");
}

TEST(TemplateBatches, HaveEachRecordOnce) {
  const SamplerPtr order = order_of_record(template_batches(), 30, {{"most", int64_t{4}}});
  expect_order_promises(*order, 30);
  expect_each_record_once(*order, 30);
}

TEST(TemplateBatches, HaveOneLabelEach) {
  const Arguments arguments("template_batches", template_batches().params, {{"most", int64_t{2}}});
  const std::vector<int64_t> labels = {5, 5, 8, 5};
  const SamplerPtr order = template_batches().make({.records = 4, .integers = labels}, arguments);
  const auto sizes = order->batch_sizes();
  EXPECT_EQ(std::vector<int64_t>(sizes.begin(), sizes.end()), (std::vector<int64_t>{2, 1, 1}));
  EXPECT_EQ(records_of_epoch(*order, 1, 0).back(), 2);
}

}  // namespace
}  // namespace headrace
