// SPDX-License-Identifier: Apache-2.0
// What operators on audio promise, beside what tests/test_audio_operators.py compares with
// torchaudio.
#include "headrace/ops/audio/audio_op.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
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

FieldState state_of(int64_t channels, int64_t frames) {
  FieldState state;
  state.name = "audio";
  state.kind = FieldKind::kAudio;
  state.dtype = DType::kFloat32;
  state.shape = {channels, frames};
  state.sample_rate = 16000;
  return state;
}

// Of all that are registered, with the arguments of their examples.
template <class Call>
void for_each_audio_op(Call&& call) {
  int met = 0;
  for (const OpRecord* record : Registry<OpRecord>::all()) {
    if (!record->make) continue;
    const std::unique_ptr<Op> op = op_of(std::string(record->name), record->example);
    if (!op->takes(FieldKind::kAudio) || op->takes(FieldKind::kImage)) continue;
    SCOPED_TRACE(record->name);
    ++met;
    call(*record, *op);
  }
  EXPECT_GE(met, 7);
}

std::vector<float> ramp(int64_t count) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(float((i * 37) % 201 - 100) / 200);
  return out;
}

TEST(EveryOperatorOnAudio, GivesWhatItsPlanSays) {
  for_each_audio_op([](const OpRecord&, const Op& op) {
    for (const int64_t channels : {1, 2, 3}) {
      for (const int64_t frames : {4000, 16000, 20011}) {
        FieldState state = state_of(channels, frames);
        op.plan(state);
        FieldValue value = value_of(ramp(channels * frames), channels);
        ASSERT_TRUE(apply(op, value));
        ASSERT_EQ(value.shape.size(), state.shape.size());
        for (size_t axis = 0; axis < state.shape.size(); ++axis) {
          if (state.shape[axis] >= 0) EXPECT_EQ(value.shape[axis], state.shape[axis]);
        }
        EXPECT_EQ(value.bytes.size(),
                  static_cast<size_t>(element_count(value.shape)) * size_of(state.dtype));
        EXPECT_EQ(value.sample_rate, state.sample_rate);
      }
    }
  });
}

TEST(EveryOperatorOnAudio, DrawsIfAndOnlyIfItSaysThatItIsRandom) {
  for_each_audio_op([](const OpRecord& record, const Op& op) {
    bool differs = false;
    std::vector<float> first;
    for (int64_t position = 0; position < 20; ++position) {
      FieldValue value = value_of(ramp(20000), 1), again = value;
      ASSERT_TRUE(apply(op, value, position));
      ASSERT_TRUE(apply(op, again, position));
      EXPECT_EQ(samples_of(value), samples_of(again));
      if (position == 0) first = samples_of(value);
      differs |= samples_of(value) != first;
    }
    EXPECT_EQ(differs, record.random);
  });
}

TEST(EveryOperatorOnAudio, LeavesTheSamplesOfAnotherBranchAlone) {
  for_each_audio_op([](const OpRecord&, const Op& op) {
    FieldValue value = value_of(ramp(20000), 1);
    const FieldValue other = value;  // shares its memory
    ASSERT_TRUE(apply(op, value));
    EXPECT_EQ(samples_of(other), ramp(20000));
  });
}

TEST(RandomClip, TakesEveryPlaceAsOften) {
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

TEST(AClip, OfAShorterSoundIsAnErrorUnlessItMayPad) {
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
