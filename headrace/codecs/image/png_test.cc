// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/codecs/image/png_test_images.h"

namespace headrace::png_test {
namespace {

TEST(Png, EveryTypeDepthAndInterlacingEqualsLibpng) {
  const auto decoder = png_codec().make();
  for (const Kind& kind : all_kinds()) {
    for (auto [width, height] : {std::pair{1, 1}, {1, 9}, {37, 1}, {67, 45}, {3000, 21}}) {
      const Bytes file = write_png(kind, width, height);
      for (ColorMode mode : kModes) {
        const auto expected = plain_decode(file, mode);
        ASSERT_TRUE(expected) << name_of(kind);
        EXPECT_TRUE(whole(*decoder, file, mode) == expected)
            << name_of(kind) << " " << width << "x" << height << " mode " << int(mode);
      }
    }
  }
}

TEST(Png, AWindowIsTheSliceOfTheWholeImage) {
  const auto decoder = png_codec().make();
  constexpr int kWidth = 9, kHeight = 7;
  for (const Kind& kind : all_kinds()) {
    const Bytes bytes = write_png(kind, kWidth, kHeight);
    const Buffer file = padded(bytes);
    const auto header = decoder->read_header(file.bytes());
    ASSERT_TRUE(header);
    for (ColorMode mode : kModes) {
      const auto full = plain_decode(bytes, mode);
      ASSERT_TRUE(full);
      for (int y = 0; y < kHeight; ++y) {
        for (int x = 0; x < kWidth; ++x) {
          for (int height = 1; height <= kHeight - y; ++height) {
            for (int width = 1; width <= kWidth - x; ++width) {
              const Window window{x, y, width, height};
              const Decoded out = decode(*decoder, file, window, mode, *header);
              ASSERT_TRUE(out.result);
              ASSERT_TRUE(out.pixels == full->slice(window))
                  << name_of(kind) << " mode " << int(mode) << " window " << x << "," << y << " "
                  << width << "x" << height;
            }
          }
        }
      }
    }
  }
}

TEST(Png, TheHeaderDescribesTheStoredForm) {
  const auto decoder = png_codec().make();
  const auto header_of = [&](const Kind& kind) {
    return *decoder->read_header(padded(write_png(kind, 20, 10)).bytes());
  };
  EXPECT_EQ(header_of({PNG_COLOR_TYPE_GRAY, 1}).channels, 1);
  EXPECT_EQ(header_of({PNG_COLOR_TYPE_GRAY_ALPHA, 8}).channels, 2);
  EXPECT_EQ(header_of({PNG_COLOR_TYPE_RGB, 16}).channels, 3);
  EXPECT_EQ(header_of({PNG_COLOR_TYPE_RGB, 16}).bits, 16);
  EXPECT_EQ(header_of({PNG_COLOR_TYPE_RGB_ALPHA, 8}).channels, 4);
  const ImageHeader palette = header_of({PNG_COLOR_TYPE_PALETTE, 4});
  EXPECT_TRUE(palette.palette);
  EXPECT_EQ(palette.channels, 3);
  EXPECT_EQ(palette.bits, 4);
  EXPECT_EQ(palette.width, 20);
  EXPECT_EQ(palette.height, 10);
  // An interlaced image is kept in memory as a whole during decoding; others a few rows at a
  // time.
  const auto working = [&](bool interlaced) {
    const Bytes file = write_png({PNG_COLOR_TYPE_RGB, 8, interlaced}, 500, 400);
    return decoder->read_header(padded(file).bytes())->working_bytes;
  };
  EXPECT_GE(working(true), 500u * 400 * 3);
  EXPECT_LT(working(false), working(true));
}

TEST(Png, TheOrientationComesFromExifBeforeThePixels) {
  const auto decoder = png_codec().make();
  const Bytes plain = write_png({PNG_COLOR_TYPE_RGB, 8}, 5, 4);
  const auto orientation = [&](const Bytes& exif) {
    Bytes file = plain;
    insert_chunk(file, kAfterHeader, "eXIf", exif);
    return decoder->read_header(padded(file).bytes())->exif_orientation;
  };
  EXPECT_EQ(decoder->read_header(padded(plain).bytes())->exif_orientation, 1);
  const Bytes little{'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0};
  const Bytes big{'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 8, 0, 0};
  EXPECT_EQ(orientation(little), 6);
  EXPECT_EQ(orientation(big), 8);
  Bytes prefixed{'E', 'x', 'i', 'f', 0, 0};
  prefixed.insert(prefixed.end(), little.begin(), little.end());
  EXPECT_EQ(orientation(prefixed), 6);
  Bytes invalid = little;
  invalid[18] = 9;
  EXPECT_EQ(orientation(invalid), 1);
  Bytes far = little;
  far[4] = far[5] = far[6] = far[7] = 255;
  EXPECT_EQ(orientation(far), 1);
  for (size_t size = 0; size < little.size(); ++size) {
    orientation(Bytes(little.begin(), little.begin() + ptrdiff_t(size)));
  }
}

TEST(Png, OneDecoderServesManyImagesInOneCall) {
  const auto decoder = png_codec().make();
  std::vector<Buffer> files;
  std::vector<Pixels> expected;
  for (const Kind& kind : all_kinds()) {
    const Bytes bytes = write_png(kind, 50, 40);
    files.push_back(padded(bytes));
    expected.push_back(*plain_decode(bytes, ColorMode::kRGB));
  }
  std::vector<Collector> sinks(files.size(), Collector(50, 40, 3));
  std::vector<DecodeJob> jobs(files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    jobs[i].sixteen_bit = SixteenBit::kClip;
    jobs[i].bytes = files[i].bytes();
    jobs[i].window = {0, 0, 50, 40};
    jobs[i].sink = &sinks[i];
  }
  decoder->decode(jobs);
  for (size_t i = 0; i < files.size(); ++i) {
    ASSERT_TRUE(jobs[i].result);
    EXPECT_TRUE(sinks[i].pixels == expected[i]) << i;
  }
}

TEST(Png, TheSignatureIdentifiesTheFormat) {
  const Bytes file = write_png({PNG_COLOR_TYPE_GRAY, 8}, 4, 4);
  EXPECT_EQ(codec_of(std::span(file).first(16)), &png_codec());
  EXPECT_FALSE(png_codec().sniff(std::span(file).first(7)));
  EXPECT_FALSE(png_codec().sniff(std::span(file).subspan(1)));
}

}  // namespace
}  // namespace headrace::png_test
