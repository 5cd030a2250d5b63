// SPDX-License-Identifier: Apache-2.0
// Limits on the scans of a progressive file (Note [What scans may cost]).
#include <gtest/gtest.h>

#include <string>

#include "headrace/codecs/image/jpeg/jpeg_test_images.h"

namespace headrace::jpeg_test {
namespace {

// A 5 kB file of 16,384 x 16,384 pixels with 500 scans kept a thread busy for a minute.
TEST(JpegScans, ASmallFileCannotCauseManyPassesOverALargeImage) {
  FileSpec spec{.width = 16, .height = 16, .sampling = {{1, 1}}, .progressive = true};
  spec.scans = {{1, {0}, 0, 0, 0, 0}};
  for (int i = 0; i < 100; ++i) spec.scans.push_back({1, {0}, 1 + i % 63, 1 + i % 63, 0, 0});
  spec.scans.resize(64);
  Bytes file = encode(spec);
  const size_t frame = marker_offsets(file, 0xC2).at(0);
  for (const size_t at : {frame + 5, frame + 7}) {
    file[at] = 4000 >> 8;
    file[at + 1] = 4000 & 255;
  }
  Decoder decoder;
  EXPECT_FALSE(decoder.whole(file).ok);
  EXPECT_EQ(decoder.last_code(), "HR0306") << decoder.last_error.message();
  EXPECT_NE(decoder.last_error.message().find("too small for that many"), std::string::npos);
  EXPECT_FALSE(decoder.coefficients(file));
}

TEST(JpegScans, AValidFileWithManyScansIsRead) {
  for (const bool arithmetic : {false, true}) {
    FileSpec spec{.width = 1200, .height = 900, .sampling = {{1, 1}}, .progressive = true};
    spec.arithmetic = arithmetic;
    spec.scans = {{1, {0}, 0, 0, 0, 1},  {1, {0}, 0, 0, 1, 0},  {1, {0}, 1, 5, 0, 2},
                  {1, {0}, 6, 63, 0, 2}, {1, {0}, 1, 63, 2, 1}, {1, {0}, 1, 63, 1, 0}};
    const Bytes file = encode(spec, [](int, int, int) { return uint8_t(255); });
    Decoder decoder;
    EXPECT_TRUE(decoder.whole(file).ok) << decoder.last_error.message();
    EXPECT_TRUE(decoder.coefficients(file));
  }
}

}  // namespace
}  // namespace headrace::jpeg_test
