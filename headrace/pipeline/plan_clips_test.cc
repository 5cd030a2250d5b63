// SPDX-License-Identifier: Apache-2.0
// Clips of videos in plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "headrace/codecs/video/video_track.h"
#include "headrace/pipeline/plan_test_records.h"

namespace headrace::plan_test {
namespace {

const Schema kVideo = {{"video", FieldKind::kVideo, DType::kUInt8, {-1, 3, -1, -1}, true}, label()};

Spec clip(int64_t frames, Given given = {}) {
  given["num_frames"] = frames;
  return spec("CenterVideoClip", given);
}
Spec clips(int64_t frames, int64_t count, Given given = {}) {
  given["num_clips"] = count;
  given["num_frames"] = frames;
  return spec("UniformVideoClips", given);
}

const Output& output(const PlanPtr& plan, const std::string& name) {
  for (const Output& each : plan->outputs()) {
    if (each.name == name) return each;
  }
  ADD_FAILURE() << "no output " << name;
  return plan->outputs()[0];
}

TEST(AClip, IsOneOutputOfAllItsImages) {
  const PlanPtr plan = plan_of(kVideo, {clip(8), resize(20, 30), to_float()});
  const Output& video = output(plan, "video");
  EXPECT_EQ(video.state.kind, FieldKind::kVideo);
  EXPECT_EQ(video.state.shape, (Shape{8, 3, 20, 30}));
  EXPECT_EQ(video.pictures.size(), 8u);
  EXPECT_EQ(video.bytes_per_record, size_t{8 * 3 * 20 * 30 * 4});
  ASSERT_EQ(plan->outputs().size(), 2u);
  for (const Step& step : plan->steps()) {
    if (step.op && step.op->clip()) continue;
    EXPECT_EQ(step.fields.size(), 8u) << step.label;
  }
  EXPECT_TRUE(plan->wanted()[0]);
}

TEST(AClip, HasTheAxesOfTheStep) {
  const auto shape = [](const Spec& step) {
    return output(plan_of(kVideo, {step, resize(20, 30)}), "video").state.shape;
  };
  const Given channels_first = {{"layout", std::string("CTHW")}};
  EXPECT_EQ(shape(clip(8, channels_first)), (Shape{3, 8, 20, 30}));
  EXPECT_EQ(shape(clips(8, 2)), (Shape{2, 8, 3, 20, 30}));
  EXPECT_EQ(shape(clips(8, 2, channels_first)), (Shape{2, 3, 8, 20, 30}));
}

TEST(AClip, HasItsTimesOnRequest) {
  const PlanPtr plan = plan_of(kVideo, {clips(4, 2, {{"times", true}}), resize(8, 8)});
  EXPECT_EQ(output(plan, "video_times").state.shape, (Shape{2, 4}));
  EXPECT_EQ(output(plan, "video_times").state.dtype, DType::kFloat64);
}

TEST(AClip, IsRejectedIfItsTimesHaveTheNameOfAnotherField) {
  Schema schema = kVideo;
  schema.push_back(schema[1]);
  schema[2].name = "video_times";
  const Spec timed = clip(4, {{"times", true}});
  EXPECT_NE(refusal([&] { plan_of(schema, {timed, resize(8, 8)}); }).find("HR0373"),
            std::string::npos);
  const PlanPtr without =
      make_plan(schema, Pipeline{{timed, resize(8, 8)}, {}, {"video_times"}}, {});
  EXPECT_EQ(output(without, "video_times").state.shape, (Shape{4}));
}

TEST(AClip, HasTheKindOfItsName) {
  const PlanPtr named =
      plan_of(kVideo, {clip(3), spec("Resize", {{"size", Ints{8, 8}}}, {"video"})});
  EXPECT_EQ(output(named, "video").state.shape, (Shape{3, 3, 8, 8}));
  const PlanPtr listed =
      make_plan(kVideo, Pipeline{{}, {{"video", {clip(3), resize(8, 8)}}}, {}}, {});
  EXPECT_EQ(output(listed, "video").state.shape, (Shape{3, 3, 8, 8}));
  const PlanPtr maybe_flipped = plan_of(kVideo, {clip(3), maybe(0.5, {flip(1)}), resize(8, 8)});
  EXPECT_EQ(output(maybe_flipped, "video").state.shape, (Shape{3, 3, 8, 8}));
}

TEST(AClip, IsShownAsOneFieldInThePlan) {
  const std::string text = plan_of(kVideo, {clip(8), resize(20, 30)})->text();
  EXPECT_NE(text.find("uint8 (8, 3, 20, 30)"), std::string::npos) << text;
  EXPECT_EQ(text.find("video, video, video"), std::string::npos) << text;
}

TEST(AFork, HasViewsOfClipsAndOfVideos) {
  const PlanPtr views = plan_of(
      kVideo, {clip(4), fork("video", {{"large", {resize(20, 20)}}, {"small", {resize(8, 8)}}})});
  EXPECT_EQ(output(views, "large").state.shape, (Shape{4, 3, 20, 20}));
  EXPECT_EQ(output(views, "small").state.shape, (Shape{4, 3, 8, 8}));
  const PlanPtr paths = plan_of(
      kVideo,
      {fork("video", {{"slow", {clip(2), resize(8, 8)}}, {"fast", {clip(8), resize(8, 8)}}})});
  EXPECT_EQ(output(paths, "slow").state.shape, (Shape{2, 3, 8, 8}));
  EXPECT_EQ(output(paths, "fast").state.shape, (Shape{8, 3, 8, 8}));
}

using Frames = std::optional<std::vector<uint32_t>>;

// The frames that the plan takes from a video of 100 key frames.
Frames frames_of(const PlanPtr& plan, int64_t position = 0) {
  VideoTrack track;
  for (uint32_t i = 0; i < 100; ++i) {
    track.packets.push_back({.offset = i, .size = 1, .key = true, .pts = i});
    track.frames.push_back(i);
  }
  track.duration = 100;
  return plan->clip_frames(0, track, /*seed=*/7, /*epoch=*/1, position);
}

TEST(FramesOfAClip, AreKnownBeforeTheRecordIsRead) {
  EXPECT_EQ(frames_of(plan_of(kVideo, {clip(4), resize(8, 8)})), (Frames{{48, 49, 50, 51}}));
  EXPECT_EQ(frames_of(plan_of(kVideo, {clips(1, 3), resize(8, 8)})), (Frames{{0, 49, 99}}));
  const Spec random = spec("RandomVideoClips", {{"num_frames", int64_t{2}}});
  const PlanPtr plan = plan_of(kVideo, {random, maybe(0.5, {flip(1)}), resize(8, 8)});
  std::set<uint32_t> begins;
  for (int64_t position = 0; position < 50; ++position) {
    const Frames frames = frames_of(plan, position);
    ASSERT_TRUE(frames);
    ASSERT_EQ(frames->size(), 2u);
    EXPECT_EQ((*frames)[1], (*frames)[0] + 1);
    begins.insert((*frames)[0]);
    EXPECT_EQ(frames, frames_of(plan, position));
  }
  EXPECT_GE(begins.size(), 20u);
}

TEST(FramesOfAClip, AreThoseOfAllBranches) {
  const PlanPtr paths = plan_of(
      kVideo,
      {fork("video", {{"slow", {clip(2), resize(8, 8)}}, {"fast", {clips(1, 2), resize(8, 8)}}})});
  Frames frames = frames_of(paths);
  ASSERT_TRUE(frames);
  std::ranges::sort(*frames);
  EXPECT_EQ(frames, (Frames{{0, 49, 50, 99}}));
}

TEST(FramesOfAClip, AreNoneIfItsStepRejectsTheVideo) {
  const Spec strict = clip(200, {{"policy", std::string("error")}});
  EXPECT_EQ(frames_of(plan_of(kVideo, {strict, resize(8, 8)})), Frames(std::vector<uint32_t>()));
}

TEST(FramesOfAClip, AreUnknownIfTheyDependOnMore) {
  const Given audio = {{"audio", int64_t{16000}}};
  EXPECT_FALSE(frames_of(plan_of(kVideo, {clip(4, audio), resize(8, 8)}, lists())));
  Schema schema = kVideo;
  schema.push_back({.name = "time", .kind = FieldKind::kTensor, .dtype = DType::kFloat64});
  const Spec at = spec("VideoClipAt", {{"num_frames", int64_t{4}}, {"time", std::string("time")}});
  EXPECT_FALSE(frames_of(plan_of(schema, {at, resize(8, 8)})));
}

TEST(AVideo, IsDecodedOnlyIfItsClipIsUsed) {
  PlanOptions options;
  options.fields = {"label"};
  const PlanPtr plan = plan_of(kVideo, {clip(4), resize(8, 8)}, options);
  EXPECT_TRUE(plan->steps().empty());
  EXPECT_FALSE(plan->wanted()[0]);
}

TEST(AVideo, IsRejectedWithoutAClip) {
  EXPECT_NE(refusal([] { plan_of(kVideo, {}); }).find("HR0372"), std::string::npos);
  EXPECT_NE(refusal([] { plan_of(kVideo, {maybe(0.5, {clip(4)})}); }).find("HR0373"),
            std::string::npos);
  EXPECT_NE(refusal([] { plan_of(kVideo, {clip(4)}); }).find("HR0114"), std::string::npos);
  EXPECT_NE(refusal([] {
              PlanOptions options;
              options.ragged = Ragged::kPad;
              plan_of(kVideo, {clip(4)}, options);
            }).find("HR0373"),
            std::string::npos);
  const Schema with_image = {kVideo[0], files("image")};
  EXPECT_NE(refusal([&] { plan_of(with_image, {flip(), clip(4)}, lists()); }).find("HR0180"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::plan_test
