// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "headrace/loader/counters.h"

namespace headrace {
namespace {

TEST(TemplateCounter, DividesRecordsByBatches) {
  const auto found =
      std::ranges::find(loader_counters(), "template_records_a_batch", &Counter<LoaderStats>::name);
  ASSERT_NE(found, loader_counters().end());
  LoaderStats stats;
  EXPECT_EQ(found->value(stats), CounterValue(0.0));
  stats.batches = 4;
  stats.records = 10;
  EXPECT_EQ(found->value(stats), CounterValue(2.5));
}

}  // namespace
}  // namespace headrace
