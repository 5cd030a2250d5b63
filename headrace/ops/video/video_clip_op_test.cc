// SPDX-License-Identifier: Apache-2.0
// The frames that the steps extract, from a video whose frames show their numbers.
// tests/test_video.py compares pixels with PyAV.
#include "headrace/ops/video/video_clip_op.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "headrace/codecs/media/mkv_test_elements.h"
#include "headrace/ops/op_test_record.h"

namespace headrace::op_test {
namespace {

// Returns gray frames whose value is their packet's number.
class NumberedFrames final : public VideoDecoder {
 public:
  Result<void> decode(const VideoTrack& track, const ByteRanges&, const FramePlan& plan,
                      FrameSink& sink) override {
    ++calls;
    for (size_t i = 0; i < plan.kept.size(); ++i) {
      std::vector<uint8_t> luma(256 * size_t(track.height), static_cast<uint8_t>(plan.kept[i]));
      YuvFrame frame;
      frame.width = track.width;
      frame.height = track.height;
      frame.planes = 1;
      frame.color = {.range = ColorRange::kFull, .transfer = transfer};
      frame.plane[0] = luma.data();
      frame.stride[0] = 256;
      if (Result<void> taken = sink.frame(i, frame); !taken) return taken;
    }
    return {};
  }
  ColorTransfer transfer = ColorTransfer::kUnspecified;
  int calls = 0;
};

VideoTrack track_of(const std::vector<int64_t>& milliseconds, int64_t end) {
  VideoTrack track;
  track.codec = VideoCodec::kVP8;
  track.width = 6;
  track.height = 4;
  track.ticks_per_second = 1000;
  for (size_t i = 0; i < milliseconds.size(); ++i) {
    track.packets.push_back({.offset = 0, .size = 1, .key = true, .pts = milliseconds[i]});
    track.frames.push_back(static_cast<uint32_t>(i));
  }
  track.duration = end;
  return track;
}

// At 25 frames a second.
VideoTrack track_of(int frames) {
  std::vector<int64_t> times;
  for (int i = 0; i < frames; ++i) times.push_back(40 * i);
  return track_of(times, 40 * frames);
}

struct Taken {
  Result<void> result;
  std::vector<int> frames;
  std::vector<double> times;
  int calls = 0;
};

Taken taken(const std::string& name, const Given& given, VideoTrack track, int64_t position = 0,
            double at = 0, ColorTransfer transfer = ColorTransfer::kUnspecified) {
  const std::unique_ptr<Op> op = make_op(name, given);
  const ClipForm& form = *op->clip();
  const std::vector<uint8_t> file(64);
  Renderer renderer;
  auto decoder = std::make_unique<NumberedFrames>();
  NumberedFrames& numbered = *decoder;
  numbered.transfer = transfer;
  renderer.videos().use(std::move(decoder));
  Record record;
  record.position = position;
  record.fields.resize(size_t(1 + form.fields() + (form.at.empty() ? 0 : 1)));
  record.fields[0].kind = FieldKind::kVideo;
  record.fields[0].video.file = ByteRanges(file);
  record.fields[0].video.track = std::make_shared<const VideoTrack>(std::move(track));
  FieldValue& last = record.fields.back();
  if (!form.at.empty()) {
    last.dtype = DType::kFloat64;
    Buffer number(sizeof(double));
    std::memcpy(number.data(), &at, sizeof at);
    last.own(std::move(number));
  }
  std::vector<int> fields(record.fields.size());
  std::iota(fields.begin(), fields.end(), 0);
  OpContext context{record, fields, Draws(3, 0, uint64_t(position), 5), renderer};
  Taken out;
  out.result = op->apply(context);
  out.calls = numbered.calls;
  if (!out.result) return out;
  for (int64_t i = 0; i < form.pictures(); ++i) {
    Recipe& picture = record.fields[size_t(1 + i)].picture;
    EXPECT_EQ(picture.size(), (Size{4, 6}));
    EXPECT_TRUE(renderer.materialize(picture));
    out.frames.push_back(picture.pixels()->pixels.data()[0]);
  }
  if (form.times) {
    const FieldValue& times = record.fields[size_t(form.fields())];
    out.times.resize(size_t(form.pictures()));
    std::memcpy(out.times.data(), times.bytes.data(), times.bytes.size());
  }
  return out;
}

using Numbers = std::vector<int>;

TEST(VideoClip, TakesFramesAtItsStride) {
  const Taken clip =
      taken("CenterVideoClip",
            {{"num_frames", int64_t{4}}, {"stride", int64_t{3}}, {"times", true}}, track_of(20));
  EXPECT_EQ(clip.frames, (Numbers{5, 8, 11, 14}));
  EXPECT_EQ(clip.times, (std::vector<double>{0.2, 0.32, 0.44, 0.56}));
}

TEST(RandomVideoClips, TakesEveryPositionEquallyOften) {
  std::map<int, int> begins;
  const Given given = {{"num_frames", int64_t{4}}, {"stride", int64_t{2}}};
  for (int64_t position = 0; position < 1000; ++position) {
    const Taken clip = taken("RandomVideoClips", given, track_of(11), position);
    ASSERT_EQ(clip.frames.back(), clip.frames.front() + 6);
    ++begins[clip.frames.front()];
  }
  ASSERT_EQ(begins.size(), 5u);
  for (const auto& [begin, count] : begins) EXPECT_NEAR(count, 200, 60) << begin;
}

TEST(RandomVideoClips, AreDrawnIndependentlyAndDecodedOnce) {
  const Taken clips = taken("RandomVideoClips",
                            {{"num_frames", int64_t{2}}, {"num_clips", int64_t{4}}}, track_of(60));
  ASSERT_EQ(clips.frames.size(), 8u);
  EXPECT_NE(clips.frames[0], clips.frames[2]);
  EXPECT_EQ(clips.calls, 1);
}

// torchcodec's clips_at_regular_indices uses torch.linspace(0, last, clips) as int64.
TEST(UniformVideoClips, AreSpacedAsInTorchcodec) {
  const auto begins = [](int64_t clips, int frames) {
    Numbers out;
    const Given given = {{"num_frames", int64_t{1}}, {"num_clips", clips}};
    return taken("UniformVideoClips", given, track_of(frames)).frames;
  };
  EXPECT_EQ(begins(1, 10), (Numbers{0}));
  EXPECT_EQ(begins(3, 10), (Numbers{0, 4, 9}));
  EXPECT_EQ(begins(4, 10), (Numbers{0, 3, 6, 9}));
  EXPECT_EQ(begins(5, 9), (Numbers{0, 2, 4, 6, 8}));
  EXPECT_EQ(begins(4, 9), (Numbers{0, 2, 5, 8}));
}

TEST(ShortVideo, IsExtendedByThePolicy) {
  Given given = {{"num_frames", int64_t{6}}, {"stride", int64_t{2}}};
  for (const char* name : {"RandomVideoClips", "CenterVideoClip"}) {
    given["policy"] = std::string("repeat_last");
    EXPECT_EQ(taken(name, given, track_of(5)).frames, (Numbers{0, 2, 4, 4, 4, 4}));
    given["policy"] = std::string("wrap");
    EXPECT_EQ(taken(name, given, track_of(5)).frames, (Numbers{0, 2, 4, 0, 2, 4}));
    EXPECT_EQ(taken(name, given, track_of(1)).frames, (Numbers{0, 0, 0, 0, 0, 0}));
    given["policy"] = std::string("error");
    const Taken refused = taken(name, given, track_of(5));
    ASSERT_FALSE(refused.result);
    EXPECT_EQ(refused.result.error().code->id, "HR0547");
    EXPECT_EQ(refused.calls, 0);
    EXPECT_TRUE(taken(name, given, track_of(11)).result);
  }
}

TEST(FramesPerSecond, AreTheFramesShownAtThatTime) {
  const VideoTrack track = track_of({100, 140, 400, 440, 480, 1000}, 1100);
  const Given given = {{"num_frames", int64_t{10}}, {"fps", 10.0}};
  EXPECT_EQ(taken("CenterVideoClip", given, track).frames, (Numbers{0, 1, 1, 2, 4, 4, 4, 4, 4, 5}));
  // At the video's own rate, each frame once.
  const Given same = {{"num_frames", int64_t{50}}, {"fps", 25.0}};
  const Taken all = taken("CenterVideoClip", same, track_of(50));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(all.frames[size_t(i)], i);
}

TEST(VideoClipAt, SurroundsTheTimeOfItsRecord) {
  const Given given = {{"num_frames", int64_t{5}}, {"time", std::string("second")}};
  const auto begin = [&](double at) {
    return taken("VideoClipAt", given, track_of(50), 0, at).frames.front();
  };
  EXPECT_EQ(begin(1.0), 23);
  EXPECT_EQ(begin(0), 0);
  EXPECT_EQ(begin(1.99), 45);
  for (const double at : {-0.1, 2.1, std::nan("")}) {
    const Taken refused = taken("VideoClipAt", given, track_of(50), 0, at);
    ASSERT_FALSE(refused.result);
    EXPECT_EQ(refused.result.error().code->id, "HR0548");
  }
}

TEST(HdrFrames, AreRejectedUnlessRequested) {
  Given given = {{"num_frames", int64_t{1}}};
  const Taken refused = taken("CenterVideoClip", given, track_of(2), 0, 0, ColorTransfer::kPQ);
  ASSERT_FALSE(refused.result);
  EXPECT_EQ(refused.result.error().code->id, "HR0377");
  given["hdr"] = true;
  EXPECT_TRUE(taken("CenterVideoClip", given, track_of(2), 0, 0, ColorTransfer::kHLG).result);
}

TEST(VideoClip, IsUprightForAnyCameraRotation) {
  VideoTrack track = track_of(2);
  for (int turns = 0; turns < 4; ++turns) {
    track.quarter_turns = turns;
    Renderer renderer;
    renderer.videos().use(std::make_unique<NumberedFrames>());
    const std::unique_ptr<Op> op = make_op("CenterVideoClip", {{"num_frames", int64_t{1}}});
    Record record;
    record.fields.resize(2);
    record.fields[0].video.track = std::make_shared<const VideoTrack>(track);
    const std::vector<int> fields = {0, 1};
    OpContext context{record, fields, Draws(0, 0, 0, 0), renderer};
    ASSERT_TRUE(op->apply(context));
    const Size size = record.fields[1].picture.size();
    EXPECT_EQ(size, turns % 2 ? (Size{6, 4}) : (Size{4, 6}));
  }
}

// For a file without audio.
Result<void> take_silence(VideoTrack track, Shape& shape) {
  const std::vector<uint8_t> file = mkv_test::Film().file();
  const std::unique_ptr<Op> op =
      make_op("CenterVideoClip", {{"num_frames", int64_t{2}},
                                  {"audio", int64_t{16000}},
                                  {"missing_audio", std::string("silence")}});
  Renderer renderer;
  renderer.videos().use(std::make_unique<NumberedFrames>());
  Record record;
  record.fields.resize(4);
  record.fields[0].kind = FieldKind::kVideo;
  record.fields[0].video.file = ByteRanges(file);
  record.fields[0].video.track = std::make_shared<const VideoTrack>(std::move(track));
  const std::vector<int> fields = {0, 1, 2, 3};
  OpContext context{record, fields, Draws(0, 0, 0, 0), renderer};
  Result<void> taken = op->apply(context);
  shape = record.fields[3].shape;
  return taken;
}

// Times in a file may be arbitrary.
TEST(ClipSilence, IsRejectedIfItExceedsTheMemoryLimit) {
  Shape shape;
  ASSERT_TRUE(take_silence(track_of({0, 40}, 80), shape));
  EXPECT_EQ(shape, (Shape{1, 1280}));
  for (const int64_t end : {int64_t{1} << 32, int64_t{1} << 40, int64_t{1} << 60}) {
    for (const int64_t ticks : {1, 1000}) {
      VideoTrack track = track_of({0, 40}, end);
      track.ticks_per_second = ticks;
      const Result<void> taken = take_silence(track, shape);
      ASSERT_FALSE(taken) << end;
      EXPECT_EQ(taken.error().code->id, "HR0546");
    }
  }
  ASSERT_TRUE(take_silence(track_of({0, 40}, -80), shape));
  EXPECT_EQ(shape, (Shape{1, 0}));
}

TEST(VideoClip, IsTakenByStrideOrByRate) {
  EXPECT_NE(
      refusal("CenterVideoClip", {{"num_frames", int64_t{4}}, {"stride", int64_t{2}}, {"fps", 5.0}})
          .find("not by both"),
      std::string::npos);
  EXPECT_NE(refusal([] {
              planned(*make_op("CenterVideoClip", {{"num_frames", int64_t{4}}}), image_state());
            }).find("frames are extracted from videos"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::op_test
