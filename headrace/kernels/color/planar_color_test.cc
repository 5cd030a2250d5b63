// SPDX-License-Identifier: Apache-2.0
// YCbCr compared with libjpeg-turbo's own conversion, for every pair of chroma samples; gray and
// CMYK with Pillow's arithmetic, copied from its source.
#include "headrace/kernels/color/planar_color.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "headrace/kernels/dispatch.h"
#include "jpeglib.h"
// Must be included after jpeglib.h: the decompressor's internals, including its color conversion.
#include "headrace/kernels/level_test_names.h"
#include "jpegint.h"

namespace headrace {
namespace {

constexpr int kBehind = 63;  // what kernels may touch after a row
using Row = std::vector<uint8_t>;
using Rows = std::array<Row, 3>;

Rows rows_of(int count) {
  Rows rows;
  for (Row& row : rows) row.resize(count + kBehind);
  return rows;
}

// Converts rows with libjpeg's decompressor for a picture of that width.
class LibjpegColor {
 public:
  explicit LibjpegColor(int width) {
    make_picture(width);
    cinfo_.err = jpeg_std_error(&errors_);
    jpeg_create_decompress(&cinfo_);
    jpeg_mem_src(&cinfo_, picture_.data(), static_cast<unsigned long>(picture_.size()));
    jpeg_read_header(&cinfo_, TRUE);
    jpeg_start_decompress(&cinfo_);
  }
  ~LibjpegColor() { jpeg_destroy_decompress(&cinfo_); }

  // Interleaved RGB.
  Row rgb(const Rows& ycc) {
    JSAMPROW in[3];
    JSAMPARRAY planes[3];
    for (int c = 0; c < 3; ++c) {
      in[c] = const_cast<JSAMPROW>(ycc[c].data());
      planes[c] = &in[c];
    }
    Row out(size_t{cinfo_.output_width} * 3);
    JSAMPROW row = out.data();
    cinfo_.cconvert->color_convert(&cinfo_, planes, 0, &row, 1);
    return out;
  }

 private:
  void make_picture(int width) {
    jpeg_compress_struct cinfo{};
    cinfo.err = jpeg_std_error(&errors_);
    jpeg_create_compress(&cinfo);
    unsigned char* out = nullptr;
    unsigned long size = 0;
    jpeg_mem_dest(&cinfo, &out, &size);
    cinfo.image_width = static_cast<JDIMENSION>(width);
    cinfo.image_height = 1;
    cinfo.input_components = 3;
    cinfo.in_color_space = JCS_RGB;
    jpeg_set_defaults(&cinfo);
    jpeg_start_compress(&cinfo, TRUE);
    Row row(size_t(width) * 3);
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&cinfo, &pointer, 1);
    jpeg_finish_compress(&cinfo);
    picture_.assign(out, out + size);
    jpeg_destroy_compress(&cinfo);
    std::free(out);
  }

  std::vector<uint8_t> picture_;
  jpeg_error_mgr errors_{};
  jpeg_decompress_struct cinfo_{};
};

class PlanarColor : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }

  Rows random_rows(int count) {
    Rows rows = rows_of(count);
    for (Row& row : rows) {
      for (uint8_t& sample : row) sample = static_cast<uint8_t>(engine_());
    }
    return rows;
  }
  static Rows rgb_of(const Rows& ycc, int count) {
    Rows rgb = rows_of(count);
    const uint8_t* const in[] = {ycc[0].data(), ycc[1].data(), ycc[2].data()};
    uint8_t* const out[] = {rgb[0].data(), rgb[1].data(), rgb[2].data()};
    rgb_from_ycc_rows(in, count, out);
    return rgb;
  }

 private:
  std::mt19937 engine_{9};
};

TEST_P(PlanarColor, EqualsLibjpegTurboForEveryPairOfChromaSamples) {
  constexpr int kCount = 256 * 256 / 2;  // half of the pairs: pictures are at most 65,500 wide
  LibjpegColor libjpeg(kCount);
  Rows ycc = rows_of(kCount);
  for (int half = 0; half < 2; ++half) {
    for (const int luma : {0, 1, 100, 127, 128, 180, 254, 255}) {
      for (int i = 0; i < kCount; ++i) {
        ycc[0][i] = static_cast<uint8_t>(luma);
        ycc[1][i] = static_cast<uint8_t>(half * 128 + i / 256);
        ycc[2][i] = static_cast<uint8_t>(i % 256);
      }
      const Row want = libjpeg.rgb(ycc);
      const Rows got = rgb_of(ycc, kCount);
      for (int i = 0; i < kCount; ++i) {
        for (int c = 0; c < 3; ++c) {
          ASSERT_EQ(got[c][i], want[3 * i + c]) << "channel " << c << " of " << luma << ", "
                                                << int{ycc[1][i]} << ", " << int{ycc[2][i]};
        }
      }
    }
  }
}

TEST_P(PlanarColor, EqualsLibjpegTurboForEveryLength) {
  for (int count = 1; count <= 200; ++count) {
    LibjpegColor libjpeg(count);
    const Rows ycc = random_rows(count);
    const Row want = libjpeg.rgb(ycc);
    const Rows got = rgb_of(ycc, count);
    for (int i = 0; i < 3 * count; ++i) ASSERT_EQ(got[i % 3][i / 3], want[i]);
  }
}

// Convert.c: L24(rgb) = R * 19595 + G * 38470 + B * 7471 + 0x8000, and its upper bits.
TEST_P(PlanarColor, GrayEqualsPillowsSum) {
  for (int count = 1; count <= 200; ++count) {
    const Rows rgb = random_rows(count);
    const uint8_t* const in[] = {rgb[0].data(), rgb[1].data(), rgb[2].data()};
    Row gray(count + kBehind);
    gray_from_rgb_rows(in, count, gray.data());
    for (int i = 0; i < count; ++i) {
      const unsigned sum = rgb[0][i] * 19595u + rgb[1][i] * 38470u + rgb[2][i] * 7471u + 0x8000u;
      ASSERT_EQ(gray[i], sum >> 16);
    }
  }
  Row white(64 + kBehind, 255), gray(64 + kBehind);
  const uint8_t* const in[] = {white.data(), white.data(), white.data()};
  gray_from_rgb_rows(in, 64, gray.data());
  EXPECT_EQ(gray[0], 255);
}

// Convert.c: nk = 255 - K; CLIP8(nk - MULDIV255(C, nk, tmp))
TEST_P(PlanarColor, CmykToRgbEqualsPillows) {
  for (int ink = 0; ink < 256; ++ink) {
    Row inks(256, static_cast<uint8_t>(ink)), white(256);
    for (int i = 0; i < 256; ++i) white[i] = static_cast<uint8_t>(i);
    Rows rgb = rows_of(256);
    const uint8_t* const in[] = {inks.data(), inks.data(), inks.data()};
    uint8_t* const out[] = {rgb[0].data(), rgb[1].data(), rgb[2].data()};
    rgb_from_cmy_rows(in, white.data(), 256, out);
    for (int nk = 0; nk < 256; ++nk) {
      const int product = ink * nk + 128;
      const int want = std::clamp(nk - (((product >> 8) + product) >> 8), 0, 255);
      for (int c = 0; c < 3; ++c) ASSERT_EQ(rgb[c][nk], want) << ink << ", " << nk;
    }
  }
}

TEST_P(PlanarColor, ComplementCountsDownFrom255) {
  Row in(256), out(256);
  for (int i = 0; i < 256; ++i) in[i] = static_cast<uint8_t>(i);
  complement_row(in.data(), 256, out.data());
  for (int i = 0; i < 256; ++i) ASSERT_EQ(out[i], 255 - i);
}

INSTANTIATE_TEST_SUITE_P(Levels, PlanarColor, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace
