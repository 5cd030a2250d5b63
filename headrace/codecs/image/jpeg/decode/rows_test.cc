// SPDX-License-Identifier: Apache-2.0
// libjpeg's coefficients, converted here, equal the slice of libjpeg's own pixels: for
// all samplings, sizes, windows and colors.
#include "headrace/codecs/image/jpeg/decode/rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "headrace/base/sweep_test_width.h"
#include "headrace/codecs/image/jpeg/decode/color.h"
#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/jpeg/idct.h"
#include "headrace/kernels/level_test_names.h"

namespace headrace::jpeg_test {
namespace rows_test {

std::vector<uint8_t> gray_of(const std::vector<uint8_t>& rgb) {
  std::vector<uint8_t> gray(rgb.size() / 3);
  gray_from_rgb_row(rgb.data(), gray.data(), gray.size());
  return gray;
}

// libjpeg's full decode, converted by the functions that are checked against Pillow.
Pixels expected_pixels(const Bytes& bytes, int components, ColorMode color) {
  Pixels pixels =
      oracle(bytes, components == 1 && color != ColorMode::kRGB ? JCS_GRAYSCALE : JCS_RGB);
  Bytes& data = pixels.data;
  const size_t count = data.size() / size_t(std::max(1, pixels.channels));
  if (components == 4) {
    Bytes converted(count * (color == ColorMode::kStored ? 4 : 3));
    (color == ColorMode::kStored ? cmyk_from_adobe_row : rgb_from_adobe_row)(
        data.data(), converted.data(), count);
    data = std::move(converted);
  }
  if (color == ColorMode::kGray && components > 1) data = gray_of(data);
  pixels.channels = static_cast<int>(data.size() / count);
  return pixels;
}

// A file's coefficients and geometry, both read by libjpeg.
class Image {
 public:
  explicit Image(Bytes bytes) : bytes_(std::move(bytes)) {
    Decoder decoder;
    Result<std::vector<CoefficientPlane>> planes = decoder.coefficients(bytes_);
    if (!planes) return;
    jpeg_decompress_struct cinfo{};
    jpeg_error_mgr errors{};
    cinfo.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&cinfo);
    jpeg_mem_src(&cinfo, bytes_.data(), bytes_.size());
    jpeg_read_header(&cinfo, TRUE);
    frame.width = static_cast<int>(cinfo.image_width);
    frame.height = static_cast<int>(cinfo.image_height);
    frame.count = cinfo.num_components;
    switch (cinfo.jpeg_color_space) {
      case JCS_GRAYSCALE:
        frame.color = JpegColor::kGray;
        break;
      case JCS_RGB:
        frame.color = JpegColor::kRGB;
        break;
      case JCS_CMYK:
        frame.color = JpegColor::kCMYK;
        break;
      case JCS_YCCK:
        frame.color = JpegColor::kYCCK;
        break;
      default:
        frame.color = JpegColor::kYCbCr;
    }
    jpeg_read_coefficients(&cinfo);
    for (int c = 0; cinfo.coef_bits && c < frame.count; ++c) {
      const int* const bits = cinfo.coef_bits[c];
      smoothed |= std::any_of(bits, bits + DCTSIZE2, [](int missing) { return missing != 0; });
    }
    jpeg_destroy_decompress(&cinfo);
    for (int c = 0; c < frame.count; ++c) {
      const CoefficientPlane& plane = (*planes)[c];
      frame.component[c].h = plane.h_sampling;
      frame.component[c].v = plane.v_sampling;
      frame.component[c].quantization = plane.quantization;
      tables_[c].set(plane.quantization);
    }
    planes_ = std::move(*planes);
    ok = lay_out(frame);
  }

  const Pixels& expected(ColorMode color) {
    Pixels& pixels = expected_[static_cast<size_t>(color)];
    if (!pixels.ok) pixels = expected_pixels(bytes_, frame.count, color);
    return pixels;
  }

  // Using JpegRows. Blocks that it does not need are filled with garbage.
  Pixels window(JpegRows& rows, const Window& window, ColorMode color) {
    Collector sink(window.width, window.height, expected(color).channels);
    rows.begin(frame, window, color, &sink);
    for (int m = rows.first_mcu_row(); m < rows.end_mcu_row(); ++m) {
      for (int c = 0; c < frame.count; ++c) {
        for (int i = 0; i < frame.component[c].v; ++i) {
          place_row(rows, c, m * frame.component[c].v + i);
        }
      }
      rows.finish(m);
    }
    Pixels out = std::move(sink.pixels);
    out.ok = sink.complete();
    return out;
  }

  // Empty if equal, otherwise the position of the first difference.
  std::string compare(JpegRows& rows, const Window& w, ColorMode color) {
    const Pixels got = window(rows, w, color), want = expected(color).slice(w);
    if (!want.ok) return "libjpeg: " + expected(color).error;
    if (!got.ok) return "rows are missing or out of order";
    const auto at = std::mismatch(want.data.begin(), want.data.end(), got.data.begin());
    if (at.first == want.data.end()) return "";
    const long i = at.first - want.data.begin(), pixel = i / want.channels;
    return "channel " + std::to_string(i % want.channels) + " of (" +
           std::to_string(pixel % w.width) + ", " + std::to_string(pixel / w.width) + ") in " +
           std::to_string(w.width) + "x" + std::to_string(w.height) + " at " + std::to_string(w.x) +
           "," + std::to_string(w.y) + ": " + std::to_string(*at.second) + " instead of " +
           std::to_string(*at.first);
  }

  JpegFrame frame;
  bool ok = false;
  bool smoothed = false;  // scans are missing; libjpeg estimates their coefficients

 private:
  void place_row(JpegRows& rows, int c, int y) {
    const JpegRows::Columns columns = rows.columns(c);
    const JpegRows::Place place = rows.place(c, y);
    EXPECT_EQ(columns.first % 4, 0);
    EXPECT_LE(columns.end, frame.component[c].blocks_wide);
    if (!rows.needs_block_row(c, y)) {
      for (int i = 0; i < 8; ++i) {
        std::memset(place.samples + i * place.stride, 0xa5, size_t(columns.count() + 3) / 4 * 32);
      }
      return;
    }
    ASSERT_LT(y, frame.component[c].blocks_high);
    const CoefficientPlane& plane = planes_[c];
    blocks_.resize(size_t(columns.count()) * 128);
    auto* const to = reinterpret_cast<int16_t*>(blocks_.data());
    for (int b = 0; b < columns.count(); ++b) {
      const int16_t* const from =
          &plane.coefficients[(size_t(y) * plane.blocks_wide + columns.first + b) * 64];
      for (int i = 0; i < 64; ++i) to[b * 64 + kIdctFromNatural[i]] = from[i];
    }
    idct_row(tables_[c], {.first = to}, columns.count(), place.samples, place.stride);
  }

  Bytes bytes_;
  std::vector<CoefficientPlane> planes_;
  std::array<IdctTable, 4> tables_;
  std::array<Pixels, 3> expected_;
  Buffer blocks_;
};

constexpr ColorMode kModes[] = {ColorMode::kRGB, ColorMode::kGray, ColorMode::kStored};

const std::vector<std::vector<Factors>>& samplings() {
  static const std::vector<std::vector<Factors>> all = {{{1, 1}, {1, 1}, {1, 1}},
                                                        {{2, 1}, {1, 1}, {1, 1}},
                                                        {{2, 2}, {1, 1}, {1, 1}},
                                                        {{1, 2}, {1, 1}, {1, 1}},
                                                        {{4, 1}, {1, 1}, {1, 1}},
                                                        {{4, 2}, {1, 1}, {1, 1}},
                                                        {{1, 4}, {1, 1}, {1, 1}},
                                                        {{2, 4}, {1, 1}, {1, 1}},
                                                        {{2, 2}, {2, 1}, {1, 1}},
                                                        {{2, 2}, {1, 2}, {2, 1}},
                                                        {{2, 1}, {1, 2}, {1, 1}},
                                                        {{1, 1}, {2, 2}, {1, 1}},
                                                        {{4, 1}, {2, 1}, {1, 1}},
                                                        {{2, 1}, {2, 1}, {2, 1}},
                                                        {{3, 1}, {1, 1}, {1, 1}},
                                                        {{1, 3}, {1, 1}, {1, 1}},
                                                        {{1, 4}, {1, 2}, {1, 1}},
                                                        {{2, 4}, {1, 2}, {1, 1}},
                                                        {{4, 4}, {2, 2}, {2, 4}},
                                                        {{1, 1}},
                                                        {{2, 2}}};
  return all;
}

Bytes encoded(FileSpec spec) {
  int blocks = 0;
  for (const Factors& factors : spec.sampling) blocks += factors.h * factors.v;
  if (blocks > 10) spec.one_scan_per_component = true;  // too many blocks for an MCU
  return encode(spec);
}

std::string text_of(const FileSpec& spec) {
  std::string text = std::to_string(spec.width) + "x" + std::to_string(spec.height);
  for (const Factors& f : spec.sampling) text += " " + std::to_string(f.h) + std::to_string(f.v);
  return text + " in color space " + std::to_string(spec.file_space);
}

class Rows : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }

  // The whole image and a few windows, in every color mode.
  void expect_equal(Image& image, int windows) {
    const Window all{0, 0, image.frame.width, image.frame.height};
    for (const ColorMode mode : kModes) ASSERT_EQ(image.compare(rows_, all, mode), "");
    for (int i = 0; i < windows; ++i) {
      const Window window = draw_.window(all.width, all.height);
      ASSERT_EQ(image.compare(rows_, window, kModes[draw_.below(3)]), "");
    }
  }
  void expect_equal(const FileSpec& spec, int windows) {
    SCOPED_TRACE(text_of(spec));
    Image image(encoded(spec));
    ASSERT_TRUE(image.ok);
    expect_equal(image, windows);
  }

  Draw draw_{7};
  JpegRows rows_;  // one for all images, as in a decoder
};

TEST_P(Rows, EqualTheSliceForEveryWidthAndHeight) {
  for (const std::vector<Factors>& sampling : samplings()) {
    for (int side = 1; side <= 70; ++side) {
      expect_equal({.width = side, .height = 1 + draw_.below(70), .sampling = sampling}, 4);
      expect_equal({.width = 1 + draw_.below(70), .height = side, .sampling = sampling}, 4);
    }
  }
}

TEST_P(Rows, EqualTheSliceOfLargerImages) {
  for (const std::vector<Factors>& sampling : samplings()) {
    for (int i = 0; i < 12; ++i) {
      expect_equal({.width = 71 + draw_.below(190),
                    .height = 71 + draw_.below(190),
                    .sampling = sampling,
                    .quality = 1 + draw_.below(100)},
                   20);
    }
  }
}

TEST_P(Rows, EqualTheSliceAtEveryOffset) {
  constexpr int kWidth = 109, kHeight = 91;
  for (const std::vector<Factors>& sampling : samplings()) {
    const FileSpec spec{.width = kWidth, .height = kHeight, .sampling = sampling};
    SCOPED_TRACE(text_of(spec));
    Image image(encoded(spec));
    ASSERT_TRUE(image.ok);
    for (int i = 0; i < 32 * 32; ++i) {
      Window window{.x = i % 32 + 32 * draw_.below(2), .y = i / 32 + 32 * draw_.below(2)};
      window.width = 1 + draw_.below(draw_.below(2) ? 9 : kWidth - window.x);
      window.height = 1 + draw_.below(draw_.below(2) ? 9 : kHeight - window.y);
      ASSERT_EQ(image.compare(rows_, window, ColorMode::kRGB), "");
    }
  }
}

TEST_P(Rows, EqualTheSliceInEveryColorSpace) {
  for (const std::vector<Factors>& sampling : samplings()) {
    if (sampling.size() == 1) continue;
    for (const J_COLOR_SPACE space : {JCS_RGB, JCS_CMYK, JCS_YCCK}) {
      for (int i = 0; i < 12; ++i) {
        FileSpec spec{.width = 1 + draw_.below(90),
                      .height = 1 + draw_.below(90),
                      .sampling = sampling,
                      .file_space = space,
                      .adobe = i % 4 > 0};
        if (space != JCS_RGB) spec.sampling.push_back(sampling[i % 3]);
        expect_equal(spec, 6);
      }
    }
  }
}

TEST_P(Rows, EqualTheSliceOfProgressiveImages) {
  for (const std::vector<Factors>& sampling : samplings()) {
    expect_equal({.width = 61, .height = 83, .sampling = sampling, .progressive = true}, 20);
  }
}

TEST_P(Rows, StayWithinTheirMemoryEstimate) {
  for (const std::vector<Factors>& sampling : samplings()) {
    for (const ColorMode mode : kModes) {
      const FileSpec spec{.width = 1 + draw_.below(300), .height = 40, .sampling = sampling};
      Image image(encode({.width = spec.width, .height = 40, .sampling = {{1, 1}}}));
      JpegFrame& frame = image.frame;
      frame.count = static_cast<int>(sampling.size());
      frame.color = frame.count == 1 ? JpegColor::kGray : JpegColor::kYCbCr;
      for (int c = 0; c < frame.count; ++c) {
        frame.component[c].h = sampling[c].h;
        frame.component[c].v = sampling[c].v;
      }
      ASSERT_TRUE(lay_out(frame));
      JpegRows rows;
      Collector sink(spec.width, spec.height, 3);
      rows.begin(frame, {0, 0, spec.width, spec.height}, mode, &sink);
      EXPECT_LE(rows.held_bytes(), JpegRows::working_bytes(frame)) << text_of(spec);
    }
  }
}

// With photos and every type of file in the test data.
TEST_P(Rows, EqualTheSliceOfRealFiles) {
  const char* const root = std::getenv("HEADRACE_TEST_DATA");
  if (!root) GTEST_SKIP() << "HEADRACE_TEST_DATA is not set";
  int compared = 0;
  for (const char* folder : {"photos", "jpeg_variants"}) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(root) / folder)) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    const size_t step = std::string(folder) == "photos" ? size_t(8 * kSweepStep) : 1;
    for (size_t i = 0; i < paths.size(); i += step) {
      SCOPED_TRACE(paths[i].filename().string());
      std::ifstream in(paths[i], std::ios::binary);
      Image image(Bytes(std::istreambuf_iterator<char>(in), {}));
      // Others are damaged, or of an unsupported type.
      if (!image.ok || image.smoothed || !image.expected(ColorMode::kRGB).ok) continue;
      expect_equal(image, 6);
      ++compared;
    }
  }
  EXPECT_GT(compared, 100 / kSweepStep);
}

INSTANTIATE_TEST_SUITE_P(Levels, Rows, testing::ValuesIn(available_levels()), level_name);

}  // namespace rows_test
}  // namespace headrace::jpeg_test
