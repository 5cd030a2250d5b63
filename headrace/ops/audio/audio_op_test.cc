// SPDX-License-Identifier: Apache-2.0
// Tests clips from audio of any length. ops/spectral/spectral_contract_test.cc tests the contract
// of all audio operators; tests/test_audio_operators.py compares with torchaudio.
#include "headrace/ops/audio/audio_op.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "headrace/base/registry.h"

namespace headrace {
namespace {

std::unique_ptr<Op> op_of(const std::string& name, const std::map<std::string, ParamValue>& given) {
  const OpRecord& record = *Registry<OpRecord>::find(name);
  return record.make(Arguments(record.name, record.params, given));
}

FieldValue value_of(const std::vector<float>& samples, int64_t channels) {
  FieldValue value;
  value.kind = FieldKind::kAudio;
  value.dtype = DType::kFloat32;
  value.shape = {channels, std::ssize(samples) / channels};
  value.sample_rate = 16000;
  Buffer bytes(samples.size() * sizeof(float));
  std::memcpy(bytes.data(), samples.data(), bytes.size());
  value.own(std::move(bytes));
  return value;
}

std::vector<float> samples_of(const FieldValue& value) {
  std::vector<float> out(value.bytes.size() / sizeof(float));
  std::memcpy(out.data(), value.bytes.data(), value.bytes.size());
  return out;
}

Result<void> apply(const Op& op, FieldValue& value, int64_t position = 0) {
  static Renderer renderer;
  Record record;
  record.position = position;
  record.fields.push_back(value);
  const int fields[] = {0};
  OpContext context{record, fields, Draws(3, 0, static_cast<uint64_t>(position), 5), renderer};
  Result<void> done = op.apply(context);
  value = record.fields[0];
  return done;
}

TEST(RandomClip, TakesEveryPositionEquallyOften) {
  const auto op = op_of("RandomClip", {{"num_frames", int64_t{3}}});
  std::map<float, int> counts;
  std::vector<float> samples = {0, 1, 2, 3, 4, 5, 6};
  for (int64_t position = 0; position < 5000; ++position) {
    FieldValue value = value_of(samples, 1);
    ASSERT_TRUE(apply(*op, value, position));
    ++counts[samples_of(value)[0]];
  }
  ASSERT_EQ(counts.size(), 5u);
  for (const auto& [place, count] : counts) EXPECT_NEAR(count, 1000, 150) << place;
}

TEST(AudioClip, IsAnErrorForShorterAudioUnlessPaddingIsEnabled) {
  FieldValue value = value_of({1, 2, 3}, 1);
  for (const char* name : {"RandomClip", "CenterClip"}) {
    const Result<void> done = apply(*op_of(name, {{"num_frames", int64_t{6}}}), value);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code->id, "HR0540");
  }
  FieldValue random = value, center = value, trimmed = value;
  ASSERT_TRUE(
      apply(*op_of("RandomClip", {{"num_frames", int64_t{6}}, {"pad_if_needed", true}}), random));
  EXPECT_EQ(samples_of(random), (std::vector<float>{1, 2, 3, 0, 0, 0}));
  ASSERT_TRUE(
      apply(*op_of("CenterClip", {{"num_frames", int64_t{6}}, {"pad_if_needed", true}}), center));
  EXPECT_EQ(samples_of(center), (std::vector<float>{0, 1, 2, 3, 0, 0}));
  ASSERT_TRUE(apply(*op_of("PadOrTrim", {{"num_frames", int64_t{2}}}), trimmed));
  EXPECT_EQ(samples_of(trimmed), (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace headrace
