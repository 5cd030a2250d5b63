// SPDX-License-Identifier: Apache-2.0
// Video frames as pictures: every window equals that part of the whole frame, for all plane
// layouts, and a recipe on a frame equals the same recipe on its pixels.
#include "headrace/ops/video/clip_frames.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/image/render.h"
#include "headrace/kernels/color/planar_color.h"
#include "headrace/kernels/video/yuv_rows.h"

namespace headrace {
namespace {

struct Form {
  const char* name;
  int planes, chroma_x, chroma_y, bits;
  ColorMatrix matrix = ColorMatrix::kUnspecified;
  ColorRange range = ColorRange::kUnspecified;
};
constexpr std::array kForms = {
    Form{"Yuv420", 3, 1, 1, 8},
    Form{"Yuv420Full", 3, 1, 1, 8, ColorMatrix::kBT709, ColorRange::kFull},
    Form{"Yuv422", 3, 1, 0, 8, ColorMatrix::kBT2020},
    Form{"Yuv440", 3, 0, 1, 8, ColorMatrix::kFCC},
    Form{"Yuv444", 3, 0, 0, 8, ColorMatrix::kSMPTE240M},
    Form{"Yuv411", 3, 2, 0, 8},
    Form{"Yuv410", 3, 2, 2, 8},
    Form{"Gray", 1, 0, 0, 8},
    Form{"Gbr", 3, 0, 0, 8, ColorMatrix::kIdentity},
    Form{"Yuv420Of10", 3, 1, 1, 10, ColorMatrix::kBT2020},
    Form{"Yuv422Of12", 3, 1, 0, 12},
    Form{"Yuv444Of10", 3, 0, 0, 10},
    Form{"Yuv411Of10", 3, 2, 0, 10},
    Form{"GrayOf10", 1, 0, 0, 10},
    Form{"GbrOf16", 3, 0, 0, 16, ColorMatrix::kIdentity},
};

// A random frame, whose memory ends where reads past a row must end.
struct TestFrame {
  TestFrame(const Form& form, int width, int height) {
    frame.width = width;
    frame.height = height;
    frame.planes = form.planes;
    frame.chroma_x = form.chroma_x;
    frame.chroma_y = form.chroma_y;
    frame.bits = form.bits;
    frame.color = {.matrix = form.matrix, .range = form.range};
    std::mt19937 engine(7);
    const size_t bytes = form.bits > 8 ? 2 : 1;
    for (size_t p = 0; p < size_t(form.planes); ++p) {
      const int x = p ? form.chroma_x : 0, y = p ? form.chroma_y : 0;
      const int columns = (width + (1 << x) - 1) >> x, rows = (height + (1 << y) - 1) >> y;
      const size_t stride = size_t(columns) * bytes + 2 * p;  // of even bytes
      memory[p].resize(stride * size_t(rows));
      for (size_t i = 0; i < memory[p].size() / bytes; ++i) {
        const unsigned sample = engine() >> (32 - form.bits);
        std::memcpy(memory[p].data() + i * bytes, &sample, bytes);
      }
      frame.plane[p] = memory[p].data();
      frame.stride[p] = ptrdiff_t(stride);
    }
  }
  std::array<Buffer, 3> memory;
  YuvFrame frame;
};

int sample_of(const YuvFrame& frame, size_t plane, int x, int y) {
  if (plane > 0) {
    x >>= frame.chroma_x;
    y >>= frame.chroma_y;
  }
  const uint8_t* const row = frame.plane[plane] + y * frame.stride[plane];
  return frame.bits == 8 ? row[x] : reinterpret_cast<const uint16_t*>(row)[x];
}

// One pixel by itself.
std::array<uint8_t, 3> pixel(const YuvFrame& frame, int x, int y) {
  std::array<uint8_t, 3 * 64> room{};
  uint8_t* const rgb[] = {room.data(), room.data() + 64, room.data() + 128};
  std::array<std::array<uint16_t, 64>, 3> wide{};
  std::array<std::array<uint8_t, 64>, 3> bytes{};
  for (size_t p = 0; p < size_t(frame.planes); ++p) {
    const int sample = sample_of(frame, p, x, y);
    wide[p][0] = uint16_t(sample);
    bytes[p][0] = uint8_t(sample);
  }
  const auto as_byte = [&](size_t p) {
    if (frame.bits == 8) return bytes[p][0];
    bytes_from_deep_row(wide[p].data(), frame.bits, 1, room.data());
    return room[0];
  };
  if (frame.planes == 1) return {as_byte(0), as_byte(0), as_byte(0)};
  if (frame.color.matrix == ColorMatrix::kIdentity) return {as_byte(2), as_byte(0), as_byte(1)};
  constexpr std::array kMatrices = {YuvMatrix::kBT601,  YuvMatrix::kBT601,     YuvMatrix::kBT709,
                                    YuvMatrix::kBT2020, YuvMatrix::kSMPTE240M, YuvMatrix::kFCC};
  const YuvMatrix matrix = kMatrices[size_t(frame.color.matrix)];
  const bool full = frame.color.range == ColorRange::kFull;
  if (frame.bits == 8) {
    const uint8_t* const in[] = {bytes[0].data(), bytes[1].data(), bytes[2].data()};
    rgb_from_yuv_row(in, false, 1, yuv_coefficients(matrix, full), rgb);
  } else {
    const uint16_t* const in[] = {wide[0].data(), wide[1].data(), wide[2].data()};
    rgb_from_deep_yuv_row(in, false, 1, deep_yuv_coefficients(matrix, full, frame.bits), rgb);
  }
  return {room[0], room[64], room[128]};
}

Picture rendered(const Recipe& recipe) {
  const Size size = recipe.size();
  Picture out(recipe.channels(), size.height, size.width, recipe.dtype());
  Renderer renderer;
  std::array<RenderTask, 1> task{};
  task[0].recipe = &recipe;
  task[0].target.data = out.pixels.data();
  renderer.render(task);
  EXPECT_TRUE(task[0].result);
  return out;
}

bool same(const Picture& a, const Picture& b) {
  return a.channels == b.channels && a.height == b.height && a.width == b.width &&
         std::memcmp(a.pixels.data(), b.pixels.data(), a.pixels.size()) == 0;
}

Picture pixels_of(const YuvFrame& frame) {
  Picture out(3, frame.height, frame.width, DType::kUInt8);
  for (int y = 0; y < frame.height; ++y) {
    for (int x = 0; x < frame.width; ++x) {
      const std::array<uint8_t, 3> rgb = pixel(frame, x, y);
      for (int c = 0; c < 3; ++c) out.plane(c)[y * frame.width + x] = rgb[size_t(c)];
    }
  }
  return out;
}

class VideoFrame : public testing::TestWithParam<Form> {};

TEST_P(VideoFrame, EqualsItsConvertedPixels) {
  for (const auto& [width, height] : {std::pair{70, 34}, std::pair{71, 35}, std::pair{1, 1}}) {
    const TestFrame test(GetParam(), width, height);
    EXPECT_TRUE(same(rendered(Recipe(picture_of(test.frame))), pixels_of(test.frame)))
        << width << " x " << height;
  }
}

TEST_P(VideoFrame, AnyWindowEqualsThatPartOfTheFrame) {
  constexpr int kWidth = 75, kHeight = 23;
  const TestFrame test(GetParam(), kWidth, kHeight);
  const Picture whole = pixels_of(test.frame);
  for (const Window& window : {Window{1, 1, 5, 7}, Window{3, 2, 72, 21}, Window{74, 22, 1, 1},
                               Window{2, 5, 64, 3}, Window{0, 3, 75, 20}}) {
    Recipe recipe(picture_of(test.frame));
    ASSERT_TRUE(recipe.crop(window));
    const Picture got = rendered(recipe);
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < window.height; ++y) {
        ASSERT_EQ(
            std::memcmp(got.plane(c) + y * window.width,
                        whole.plane(c) + (y + window.y) * kWidth + window.x, size_t(window.width)),
            0)
            << "channel " << c << ", row " << y << " of " << window.x << ", " << window.y;
      }
    }
  }
}

TEST_P(VideoFrame, IsCroppedResizedAndRotatedLikeItsPixels) {
  const TestFrame test(GetParam(), 160, 120);
  const auto edited = [](Recipe recipe) {
    EXPECT_TRUE(recipe.crop({11, 7, 140, 99}));
    EXPECT_TRUE(recipe.transpose());
    EXPECT_TRUE(recipe.resize({64, 48}, Filter::kBilinear));
    EXPECT_TRUE(recipe.flip_horizontal());
    return rendered(recipe);
  };
  EXPECT_TRUE(same(edited(Recipe(picture_of(test.frame))),
                   edited(Recipe(std::make_shared<const Picture>(pixels_of(test.frame))))));
}

TEST_P(VideoFrame, IsGrayLikeItsColors) {
  const TestFrame test(GetParam(), 71, 35);
  const Picture whole = pixels_of(test.frame);
  EncodedImage picture = picture_of(test.frame);
  picture.color = ColorMode::kGray;
  const Picture gray = rendered(Recipe(picture));
  ASSERT_EQ(gray.channels, 1);
  for (int i = 0; i < 71 * 35; ++i) {
    const int sum =
        whole.plane(0)[i] * 19595 + whole.plane(1)[i] * 38470 + whole.plane(2)[i] * 7471 + 0x8000;
    ASSERT_EQ(gray.plane(0)[i], sum >> 16);
  }
}

TEST_P(VideoFrame, IsOpaqueIfAlphaIsRequested) {
  const TestFrame test(GetParam(), 9, 4);
  EncodedImage picture = picture_of(test.frame);
  picture.color = ColorMode::kRGBA;
  const Picture rgba = rendered(Recipe(picture));
  ASSERT_EQ(rgba.channels, 4);
  for (int i = 0; i < 9 * 4; ++i) ASSERT_EQ(rgba.plane(3)[i], 255);
}

TEST_P(VideoFrame, OutlivesItsPlanesIfKept) {
  auto test = std::make_unique<TestFrame>(GetParam(), 71, 35);
  const Picture want = pixels_of(test->frame);
  KeptFrames kept(3);
  for (const size_t number : {2, 0, 1}) kept.keep(number, test->frame);
  test.reset();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(same(rendered(Recipe(picture_of(kept.frame(i)))), want));
  }
}

TEST_P(VideoFrame, MayBeKeptWithFramesOfOtherSizes) {
  const TestFrame small(GetParam(), 20, 11), large(GetParam(), 71, 35), larger(GetParam(), 72, 37);
  std::vector<size_t> asked;
  KeptFrames kept(4, [&](size_t bytes) {
    asked.push_back(bytes);
    return std::make_shared<Buffer>(bytes);
  });
  const std::array<const TestFrame*, 4> frames = {&large, &small, &larger, &small};
  for (size_t i = 0; i < 4; ++i) kept.keep(i, frames[i]->frame);
  EXPECT_EQ(asked, (std::vector<size_t>{4 * KeptFrames::bytes_for(large.frame),
                                        KeptFrames::bytes_for(larger.frame)}));
  EXPECT_GE(kept.held_bytes(), asked[0] + asked[1]);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(same(rendered(Recipe(picture_of(kept.frame(i)))),
                     rendered(Recipe(picture_of(frames[i]->frame)))));
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, VideoFrame, testing::ValuesIn(kForms),
                         [](const testing::TestParamInfo<Form>& info) {
                           return std::string(info.param.name);
                         });

TEST(FrameCodec, HasNoSignature) {
  for (const CodecRecord* codec : Registry<CodecRecord>::all()) EXPECT_NE(codec, &frame_codec());
  const TestFrame test(kForms[0], 16, 16);
  EXPECT_NE(codec_of(bytes_of(test.frame)), &frame_codec());
}

TEST(FrameCodec, RejectsUnknownColorMatrices) {
  const TestFrame test({"Other", 3, 1, 1, 8, ColorMatrix::kOther}, 16, 16);
  Picture out(3, 16, 16, DType::kUInt8);
  const Recipe recipe(picture_of(test.frame));
  Renderer renderer;
  std::array<RenderTask, 1> task{};
  task[0].recipe = &recipe;
  task[0].target.data = out.pixels.data();
  renderer.render(task);
  ASSERT_FALSE(task[0].result);
  EXPECT_EQ(task[0].result.error().code->id, "HR0380");
}

TEST(FrameCodec, DescribesItsMemory) {
  const TestFrame test(kForms[0], 1920, 16);
  const ImageHeader header = picture_of(test.frame).header;
  EXPECT_EQ(header.width, 1920);
  EXPECT_EQ(header.height, 16);
  EXPECT_EQ(header.channels, 3);
  EXPECT_EQ(header.exif_orientation, 1);
  EXPECT_LT(header.working_bytes, size_t{64} << 10);  // regardless of the height
}

}  // namespace
}  // namespace headrace
