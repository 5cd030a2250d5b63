// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

TEST(TemplateAdd, AddsToLabels) {
  Record record;
  record.fields.resize(1);
  record.fields[0].kind = FieldKind::kLabel;
  record.fields[0].scalar = 35;
  Renderer renderer;
  const int fields[] = {0};
  OpContext context{record, fields, Draws(0, 0, 0, 1), renderer};
  ASSERT_TRUE(make_op("TemplateAdd", {{"number", int64_t{7}}})->apply(context));
  EXPECT_EQ(record.fields[0].scalar, 42);
}

}  // namespace
}  // namespace headrace::op_test
