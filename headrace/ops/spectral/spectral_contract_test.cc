// SPDX-License-Identifier: Apache-2.0
// The contract of every registered operator on audio, with the arguments of its example. For
// operators on pictures: ops/contract_test.cc.
#include <gtest/gtest.h>

#include <random>

#include "headrace/kernels/dispatch.h"
#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

// Input for an operator on audio: a waveform of one or two channels, or a spectrogram with as many
// bins as the examples have, with this many frames.
std::vector<float> sound_of(const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(-1, 1);
  std::vector<float> numbers(static_cast<size_t>(element_count(shape)));
  for (float& number : numbers) number = shape.size() == 2 ? value(random) : 2 + value(random);
  return numbers;
}
FieldKind kind_of(const Shape& shape) {
  return shape.size() == 2 ? FieldKind::kAudio : FieldKind::kTensor;
}
FieldState audio_state(Shape shape) {
  return {"sound", kind_of(shape), DType::kFloat32, std::move(shape), {}};
}
struct AudioClip {
  Shape shape;
  std::vector<float> numbers;
  friend bool operator==(const AudioClip&, const AudioClip&) = default;
};
AudioClip output_of_op(const Op& op, const Shape& shape, int64_t position, uint32_t seed = 4) {
  TestRecord record(std::vector<Picture>(), position);
  const int field = record.add_rows(kind_of(shape), shape, sound_of(shape, seed));
  record.apply(op, 5);
  return {record.value(field).shape, record.numbers(field)};
}
template <class Call>
void for_each_spectral_op(Call&& call) {
  int met = 0;
  for (const OpRecord* record : Registry<OpRecord>::all()) {
    if (!record->make) continue;
    const std::unique_ptr<Op> op = make_op(std::string(record->name), record->example);
    if (!op->takes(FieldKind::kTensor) && !op->takes(FieldKind::kAudio)) continue;
    SCOPED_TRACE(record->name);
    Shape taken;
    for (const Shape& shape : {Shape{2, -1}, Shape{1, -1}, Shape{2, 9, -1}}) {
      if (taken.empty() && refusal([&] { planned(*op, audio_state(shape)); }) == "accepted")
        taken = shape;
    }
    ASSERT_FALSE(taken.empty());
    ++met;
    call(*record, *op, [&](int64_t frames) {
      Shape shape = taken;
      shape.back() = frames;
      return shape;
    });
  }
  EXPECT_GE(met, 12);
}

TEST(EveryAudioOperator, GivesThePlannedResultForEachLengthOrAnError) {
  for_each_spectral_op([](const OpRecord& record, const Op& op, auto&& of_frames) {
    int made = 0;
    for (const int64_t frames : {0, 1, 2, 5, 15, 16, 17, 33, 64, 100, 399, 400, 401, 1000, 8000}) {
      SCOPED_TRACE(frames);
      FieldState state = audio_state(of_frames(frames));
      const std::string refused = refusal([&] { op.plan(state); });
      TestRecord tested(std::vector<Picture>{});
      const int field = tested.add_rows(kind_of(of_frames(frames)), of_frames(frames),
                                        sound_of(of_frames(frames), 4));
      Result<void> done = tested.try_apply(op);
      if (refused != "accepted") {
        EXPECT_FALSE(done) << record.name << refused;
      }
      if (!done) {
        EXPECT_TRUE(done.error().code->id.starts_with("HR054")) << done.error().message();
        continue;
      }
      ++made;
      const Shape& shape = tested.value(field).shape;
      ASSERT_EQ(shape.size(), state.shape.size());
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        const int64_t said = state.shape[axis];
        EXPECT_EQ(shape[axis], said < 0 ? shape[axis] : said) << axis;
      }
      EXPECT_EQ(size_t(element_count(shape)), tested.numbers(field).size());
    }
    EXPECT_GE(made, 1);
  });
}

TEST(EveryAudioOperator, GivesThePredictedLength) {
  for_each_spectral_op([](const OpRecord& record, const Op& op, auto&& of_frames) {
    const bool by_samples = record.name == "TrimSilence";  // the axis whose length varies
    for (const int64_t frames : {0, 1, 16, 17, 100, 399, 401, 8000, 16001}) {
      for (int64_t position = 0; position < 8; ++position) {
        SCOPED_TRACE(frames);
        TestRecord tested(std::vector<Picture>(), position);
        const int field = tested.add_rows(kind_of(of_frames(frames)), of_frames(frames),
                                          sound_of(of_frames(frames), 4));
        Predicted predicted{of_frames(frames)};
        const Draws draws(7, 0, static_cast<uint64_t>(position), 1);
        const bool said = op.predict(predicted, draws);
        const bool done = bool(tested.try_apply(op, 7));
        if (frames >= 8000) {
          EXPECT_NE(said, by_samples);
          EXPECT_TRUE(done);
        }
        if (said && done) {
          EXPECT_EQ(predicted.shape, tested.value(field).shape);
        }
      }
    }
  });
}

TEST(EveryAudioOperator, GivesTheSameBytesAtEachSimdLevel) {
  for_each_spectral_op([](const OpRecord&, const Op& op, auto&& of_frames) {
    for (const int64_t frames : {1000, 8000}) {
      set_simd_level(SimdLevel::kScalar);
      const AudioClip scalar = output_of_op(op, of_frames(frames), 3);
      for (const SimdLevel level : available_levels()) {
        set_simd_level(level);
        EXPECT_EQ(output_of_op(op, of_frames(frames), 3), scalar) << name_of(level);
      }
    }
  });
}

TEST(EveryAudioOperator, DrawsIfAndOnlyIfDeclaredAndAffectsItsExample) {
  for_each_spectral_op([](const OpRecord& record, const Op& op, auto&& of_frames) {
    bool differs = false, acts = false;
    const Shape shape = of_frames(20000);
    const AudioClip before{shape, sound_of(shape, 4)};
    for (int64_t position = 0; position < 20; ++position) {
      const AudioClip made = output_of_op(op, shape, position);
      EXPECT_EQ(made, output_of_op(op, shape, position));
      differs |= made != output_of_op(op, shape, 0);
      acts |= made != before;
    }
    EXPECT_EQ(differs, record.random);
    EXPECT_TRUE(acts);
  });
}

TEST(EveryAudioOperator, DoesNotChangeSharedValues) {
  for_each_spectral_op([](const OpRecord&, const Op& op, auto&& of_frames) {
    const Shape shape = of_frames(1000);
    TestRecord record(std::vector<Picture>{});
    const int field = record.add_rows(kind_of(shape), shape, sound_of(shape, 4));
    const FieldValue branch = record.value(field);
    record.apply(op, 5);
    const auto* numbers = reinterpret_cast<const float*>(branch.bytes.data());
    EXPECT_EQ(std::vector<float>(numbers, numbers + element_count(shape)), sound_of(shape, 4));
  });
}

}  // namespace
}  // namespace headrace::op_test
