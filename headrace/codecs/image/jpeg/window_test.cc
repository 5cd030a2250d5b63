// SPDX-License-Identifier: Apache-2.0
// A window's pixels are the slice of libjpeg-turbo's full decode, for every position and every kind
// of file, valid or damaged.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/jpeg_test_images.h"

namespace headrace::jpeg_test {
namespace {

struct NamedSampling {
  const char* name;
  std::vector<Factors> factors;
};

const std::vector<NamedSampling>& samplings() {
  static const std::vector<NamedSampling> all = {{"4:4:4", {{1, 1}, {1, 1}, {1, 1}}},
                                                 {"4:2:2", {{2, 1}, {1, 1}, {1, 1}}},
                                                 {"4:2:0", {{2, 2}, {1, 1}, {1, 1}}},
                                                 {"4:4:0", {{1, 2}, {1, 1}, {1, 1}}},
                                                 {"4:1:1", {{4, 1}, {1, 1}, {1, 1}}},
                                                 {"4:1:0", {{4, 2}, {1, 1}, {1, 1}}},
                                                 {"1x4", {{1, 4}, {1, 1}, {1, 1}}},
                                                 {"2x4", {{2, 4}, {1, 1}, {1, 1}}},
                                                 {"2x2,2x1,1x1", {{2, 2}, {2, 1}, {1, 1}}},
                                                 {"2x2,1x2,2x1", {{2, 2}, {1, 2}, {2, 1}}},
                                                 {"2x1,1x2,1x1", {{2, 1}, {1, 2}, {1, 1}}},
                                                 {"1x1,2x2,1x1", {{1, 1}, {2, 2}, {1, 1}}},
                                                 {"4x1,2x1,1x1", {{4, 1}, {2, 1}, {1, 1}}},
                                                 {"2x1,2x1,2x1", {{2, 1}, {2, 1}, {2, 1}}},
                                                 {"3x1", {{3, 1}, {1, 1}, {1, 1}}},
                                                 {"1x3", {{1, 3}, {1, 1}, {1, 1}}},
                                                 {"gray", {{1, 1}}},
                                                 {"gray 2x2", {{2, 2}}},
                                                 {"CMYK", {{1, 1}, {1, 1}, {1, 1}, {1, 1}}},
                                                 {"CMYK 2x2", {{2, 2}, {1, 1}, {1, 1}, {2, 2}}}};
  return all;
}

struct Variant {
  const char* name;
  std::function<void(FileSpec&)> apply;
};

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      {"baseline", [](FileSpec&) {}},
      {"progressive", [](FileSpec& s) { s.progressive = true; }},
      {"restarts", [](FileSpec& s) { s.restart_interval = 3; }},
      {"scan a component", [](FileSpec& s) { s.one_scan_per_component = true; }},
      {"arithmetic", [](FileSpec& s) { s.arithmetic = true; }},
      {"arithmetic progressive", [](FileSpec& s) { s.arithmetic = s.progressive = true; }}};
  return all;
}

FileSpec spec_of(const NamedSampling& sampling, const Variant& variant, int width, int height) {
  FileSpec spec{.width = width, .height = height, .sampling = sampling.factors};
  if (sampling.factors.size() == 4) spec.file_space = JCS_YCCK;
  variant.apply(spec);
  return spec;
}

// Both as stored, so that a CMYK file's four channels are compared, not their conversion.
class Comparison {
 public:
  explicit Comparison(Bytes bytes) : bytes_(std::move(bytes)) {
    const bool gray = decoder_.header(bytes_) && decoder_.header(bytes_)->channels == 1;
    expected_ = oracle(bytes_, gray ? JCS_GRAYSCALE : JCS_RGB);
    if (expected_.channels == 4) {
      for (uint8_t& value : expected_.data) value = uint8_t(255 - value);
    }
  }
  const Pixels& expected() const { return expected_; }
  bool same(const Window& window) {
    const Pixels got = decoder_.window(bytes_, window, ColorMode::kStored, expected_.channels);
    return got.ok && got.data == expected_.slice(window).data;
  }

 private:
  Decoder decoder_;
  Bytes bytes_;
  Pixels expected_;
};

std::string text_of(const Window& w) {
  return std::to_string(w.width) + "x" + std::to_string(w.height) + " at " + std::to_string(w.x) +
         "," + std::to_string(w.y);
}

TEST(JpegWindow, EqualsTheSliceAtEveryOffset) {
  constexpr int kWidth = 109, kHeight = 91;
  Draw draw(1);
  for (const NamedSampling& sampling : samplings()) {
    for (const Variant& variant : variants()) {
      SCOPED_TRACE(std::string(sampling.name) + " " + variant.name);
      Comparison compare(encode(spec_of(sampling, variant, kWidth, kHeight)));
      ASSERT_TRUE(compare.expected().ok) << compare.expected().error;
      // Every offset modulo 32 in both directions for common file types, some offsets for others.
      const int step = &variant == &variants()[0] ? 1 : &variant == &variants()[1] ? 3 : 17;
      for (int i = 0; i < 32 * 32; i += step) {
        Window window{.x = i % 32 + 32 * draw.below(2), .y = i / 32 + 32 * draw.below(2)};
        window.width = 1 + draw.below(draw.below(2) ? 9 : kWidth - window.x);
        window.height = 1 + draw.below(draw.below(2) ? 9 : kHeight - window.y);
        ASSERT_TRUE(compare.same(window)) << text_of(window);
      }
      const Window borders[] = {{0, 0, kWidth, kHeight},
                                {kWidth - 1, kHeight - 1, 1, 1},
                                {0, kHeight - 1, kWidth, 1},
                                {kWidth - 1, 0, 1, kHeight},
                                {0, 0, 1, 1}};
      for (const Window& window : borders) ASSERT_TRUE(compare.same(window)) << text_of(window);
    }
  }
}

TEST(JpegWindow, EqualsTheSliceOfImagesAFewPixelsWide) {
  Draw draw(2);
  for (const NamedSampling& sampling : samplings()) {
    for (const Variant& variant : {variants()[0], variants()[1]}) {
      for (const int width : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 65}) {
        for (const int height : {1, 2, 3, 8, 15, 17, 33}) {
          SCOPED_TRACE(std::string(sampling.name) + " " + variant.name + " " +
                       std::to_string(width) + "x" + std::to_string(height));
          Comparison compare(encode(spec_of(sampling, variant, width, height)));
          ASSERT_TRUE(compare.expected().ok);
          ASSERT_TRUE(compare.same({0, 0, width, height}));
          for (int i = 0; i < 6; ++i) {
            const Window window = draw.window(width, height);
            ASSERT_TRUE(compare.same(window)) << text_of(window);
          }
        }
      }
    }
  }
}

// A progressive file truncated before each of its scans: libjpeg-turbo then smooths its blocks.
TEST(JpegWindow, EqualsTheSliceWhereScansAreMissing) {
  Draw draw(3);
  for (const NamedSampling& sampling : samplings()) {
    SCOPED_TRACE(sampling.name);
    const Bytes jpeg = encode(spec_of(sampling, variants()[1], 150, 133));
    const std::vector<size_t> scans = marker_offsets(jpeg, 0xDA);
    ASSERT_GT(scans.size(), 2u);
    for (size_t scan = 1; scan < scans.size(); ++scan) {
      Bytes cut(jpeg.begin(), jpeg.begin() + scans[scan]);
      cut.insert(cut.end(), {0xFF, 0xD9});
      Comparison compare(cut);
      ASSERT_TRUE(compare.expected().ok);
      ASSERT_TRUE(compare.same({0, 0, 150, 133}));
      for (int i = 0; i < 12; ++i) {
        const Window window = draw.window(150, 133);
        ASSERT_TRUE(compare.same(window)) << scan << " scans, " << text_of(window);
      }
    }
  }
}

TEST(JpegDamage, ATruncatedFileGivesLibjpegTurbosPixels) {
  Draw draw(4);
  Decoder decoder;
  for (const Variant& variant : variants()) {
    const Bytes jpeg = encode(spec_of(samplings()[2], variant, 160, 120));
    for (int part = 1; part < 64; ++part) {
      SCOPED_TRACE(std::string(variant.name) + " cut at " + std::to_string(part) + "/64");
      const Bytes cut(jpeg.begin(), jpeg.begin() + jpeg.size() * part / 64);
      const Pixels expected = oracle(cut);
      const Pixels got = decoder.whole(cut);
      ASSERT_EQ(got.ok, expected.ok) << got.error << expected.error;
      if (!expected.ok) continue;
      EXPECT_EQ(got.data, expected.data);
      EXPECT_EQ(got.warnings, expected.warnings);
      const Window window = draw.window(160, 120);
      EXPECT_EQ(decoder.window(cut, window).data, expected.slice(window).data) << text_of(window);
    }
  }
}

TEST(JpegDamage, StrictDecodingReportsItEvenOutsideTheWindow) {
  Decoder decoder;
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    const Bytes jpeg = encode(spec_of(samplings()[2], variant, 160, 120));
    const Window top{40, 0, 8, 8};
    EXPECT_TRUE(decoder.window(jpeg, top, ColorMode::kRGB, 3, true).ok)
        << decoder.last_error.message();
    EXPECT_TRUE(decoder.whole(jpeg, ColorMode::kRGB, true).ok);
    const Bytes cut(jpeg.begin(), jpeg.begin() + jpeg.size() * 15 / 16);
    EXPECT_FALSE(decoder.window(cut, top, ColorMode::kRGB, 3, true).ok);
    EXPECT_EQ(decoder.last_code(), "HR0305");
    EXPECT_GE(decoder.last_error.where.offset, 0);
    const Pixels relaxed = decoder.window(cut, top);
    EXPECT_TRUE(relaxed.ok);
    EXPECT_EQ(relaxed.data, oracle(cut).slice(top).data);
  }
}

TEST(JpegDamage, AThousandMutationsGiveLibjpegTurbosPixelsOrAnError) {
  Draw draw(5);
  Decoder decoder;  // one for all files: state of a damaged one must not leak into the next
  int decoded = 0, refused = 0;
  for (int round = 0; round < 1000; ++round) {
    SCOPED_TRACE(round);
    const NamedSampling& sampling = samplings()[draw.below(int(samplings().size()))];
    const Variant& variant = variants()[draw.below(int(variants().size()))];
    Bytes bytes = encode(spec_of(sampling, variant, 60 + draw.below(40), 60 + draw.below(40)));
    for (int i = 1 + draw.below(6); i > 0; --i) {
      const size_t at = size_t(draw.below(int(bytes.size())));
      switch (draw.below(4)) {
        case 0:
          bytes[at] = uint8_t(draw.below(256));
          break;
        case 1:
          bytes[at] ^= uint8_t(1 << draw.below(8));
          break;
        case 2:
          bytes.erase(bytes.begin() + at);
          break;
        case 3:
          bytes.insert(bytes.begin() + at, uint8_t(draw.below(256)));
          break;
      }
    }
    const bool gray = sampling.factors.size() == 1;
    const Pixels expected = oracle(bytes, gray ? JCS_GRAYSCALE : JCS_RGB);
    if (expected.too_large) continue;
    const ColorMode mode = expected.channels == 1 ? ColorMode::kGray : ColorMode::kRGB;
    if (expected.channels == 4) continue;  // covered by windows above; tests the conversion here
    const Pixels got = decoder.whole(bytes, mode);
    ASSERT_EQ(got.ok, expected.ok) << got.error << " / " << expected.error;
    if (!expected.ok) {
      ++refused;
      EXPECT_NE(decoder.last_error.code, nullptr);
      continue;
    }
    ++decoded;
    const Window window = draw.window(expected.width, expected.height);
    if (!kOverflowsAsLibjpeg) continue;
    ASSERT_EQ(got.data, expected.data);
    const Pixels part = decoder.window(bytes, window, mode, expected.channels);
    ASSERT_EQ(part.data, expected.slice(window).data) << text_of(window);
  }
  EXPECT_GT(decoded, 300);
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace headrace::jpeg_test
