// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>

#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

TEST(TemplateNegate, NegatesEachSample) {
  constexpr float kSamples[] = {0.25f, -1.0f, 0.0f};
  Record record;
  FieldValue& audio = record.fields.emplace_back();
  audio.kind = FieldKind::kAudio;
  audio.dtype = DType::kFloat32;
  audio.shape = {1, 3};
  Buffer bytes(sizeof kSamples);
  std::memcpy(bytes.data(), kSamples, sizeof kSamples);
  audio.own(std::move(bytes));
  Renderer renderer;
  const int fields[] = {0};
  OpContext context{record, fields, Draws(0, 0, 0, 1), renderer};
  ASSERT_TRUE(make_op("TemplateNegate", {})->apply(context));
  float out[3];
  std::memcpy(out, record.fields[0].bytes.data(), sizeof out);
  EXPECT_EQ(out[0], -0.25f);
  EXPECT_EQ(out[1], 1.0f);
}

}  // namespace
}  // namespace headrace::op_test
