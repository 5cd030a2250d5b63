// SPDX-License-Identifier: Apache-2.0
// Colors equal Pillow's conversion of libjpeg-turbo's pixels.
#include <gtest/gtest.h>

#include <algorithm>

#include "headrace/codecs/image/jpeg/jpeg_test_images.h"

namespace headrace::jpeg_test {
namespace {

TEST(JpegColor, GrayEqualsPillowsConvertOfTheColors) {
  const Bytes jpeg = encode({.width = 70, .height = 50});
  const Pixels rgb = oracle(jpeg);
  Decoder decoder;
  const Pixels got = decoder.whole(jpeg, ColorMode::kGray);
  ASSERT_TRUE(got.ok);
  for (size_t i = 0; i < got.data.size(); ++i) {
    // Pillow, Convert.c: L24(rgb) = R * 19595 + G * 38470 + B * 7471 + 0x8000, shifted by 16.
    const int l =
        rgb.data[3 * i] * 19595 + rgb.data[3 * i + 1] * 38470 + rgb.data[3 * i + 2] * 7471;
    ASSERT_EQ(got.data[i], (l + 0x8000) >> 16);
  }
}

TEST(JpegColor, GrayFilesStayGrayOrAreReplicated) {
  const Bytes jpeg = encode(gray(33, 21));
  const Pixels expected = oracle(jpeg, JCS_GRAYSCALE);
  Decoder decoder;
  EXPECT_EQ(decoder.whole(jpeg, ColorMode::kGray).data, expected.data);
  EXPECT_EQ(decoder.whole(jpeg, ColorMode::kStored).data, expected.data);
  EXPECT_EQ(decoder.whole(jpeg, ColorMode::kRGB).data, oracle(jpeg, JCS_RGB).data);
}

TEST(JpegColor, RgbFilesAreNotConverted) {
  const Bytes jpeg = encode({.width = 30,
                             .height = 30,
                             .sampling = {{1, 1}, {1, 1}, {1, 1}},
                             .file_space = JCS_RGB,
                             .quality = 100});
  Decoder decoder;
  const Pixels got = decoder.whole(jpeg);
  EXPECT_EQ(got.data, oracle(jpeg).data);
  EXPECT_EQ(decoder.whole(jpeg, ColorMode::kStored).data, got.data);
}

TEST(JpegColor, CmykIsConvertedAsPillowDoes) {
  Decoder decoder;
  for (const J_COLOR_SPACE space : {JCS_CMYK, JCS_YCCK}) {
    for (const bool adobe : {false, true}) {
      const Bytes jpeg = encode(cmyk(adobe, space));
      const Pixels raw = oracle(jpeg, JCS_CMYK);
      const Pixels stored = decoder.whole(jpeg, ColorMode::kStored);
      const Pixels rgb = decoder.whole(jpeg, ColorMode::kRGB);
      const Pixels l = decoder.whole(jpeg, ColorMode::kGray);
      ASSERT_TRUE(raw.ok && stored.ok && rgb.ok && l.ok);
      for (size_t i = 0; i < l.data.size(); ++i) {
        const int nk = 255 - stored.data[4 * i + 3];
        int channel[3];
        for (int c = 0; c < 4; ++c) ASSERT_EQ(stored.data[4 * i + c], 255 - raw.data[4 * i + c]);
        for (int c = 0; c < 3; ++c) {
          // Pillow, Convert.c: clip8(nk - MULDIV255(cmyk[c], nk, tmp)).
          const int tmp = stored.data[4 * i + c] * nk + 128;
          channel[c] = std::clamp(nk - (((tmp >> 8) + tmp) >> 8), 0, 255);
          ASSERT_EQ(rgb.data[3 * i + c], channel[c]);
        }
        ASSERT_EQ(l.data[i],
                  (channel[0] * 19595 + channel[1] * 38470 + channel[2] * 7471 + 0x8000) >> 16);
      }
    }
  }
}

}  // namespace
}  // namespace headrace::jpeg_test
