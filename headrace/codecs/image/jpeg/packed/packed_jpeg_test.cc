// SPDX-License-Identifier: Apache-2.0
// Files are packed, decoded in packed form and unpacked: the pixels equal libjpeg-turbo's, the
// coefficients those of its jpeg_read_coefficients(), and the file is restored unchanged, at every
// SIMD level.
#include "headrace/codecs/image/jpeg/packed/packed_jpeg.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>

#include "headrace/base/sweep_test_width.h"
#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/kernels/dispatch.h"

namespace headrace::jpeg_test {
namespace {

std::vector<FileSpec> all_specs() {
  std::vector<FileSpec> specs;
  const std::vector<std::vector<Factors>> samplings = {{{1, 1}, {1, 1}, {1, 1}},
                                                       {{2, 1}, {1, 1}, {1, 1}},
                                                       {{2, 2}, {1, 1}, {1, 1}},
                                                       {{1, 2}, {1, 1}, {1, 1}},
                                                       {{4, 1}, {1, 1}, {1, 1}},
                                                       {{4, 1}, {2, 1}, {1, 1}},
                                                       {{1, 1}}};
  for (const auto& sampling : samplings) {
    for (const bool progressive : {false, true}) {
      for (const int quality : {20, 85, 100}) {
        FileSpec spec{.width = 135, .height = 77, .sampling = sampling};
        spec.progressive = progressive;
        spec.quality = quality;
        specs.push_back(spec);
      }
    }
  }
  for (const auto& [width, height] : std::vector<std::pair<int, int>>{
           {1, 1}, {2, 2}, {3, 9}, {8, 8}, {9, 7}, {16, 17}, {33, 1}, {1, 65}, {127, 129}}) {
    for (const auto& sampling : samplings) {
      specs.push_back({.width = width, .height = height, .sampling = sampling});
    }
  }
  specs.push_back(cmyk(true, JCS_YCCK));
  specs.push_back(cmyk(true, JCS_CMYK));
  specs.push_back(cmyk(false, JCS_CMYK));
  specs.push_back({.restart_interval = 3});
  FileSpec rgb;
  rgb.sampling = {{1, 1}, {1, 1}, {1, 1}};
  rgb.file_space = JCS_RGB;
  specs.push_back(rgb);
  return specs;
}

Bytes packed(const Bytes& file) {
  Result<std::vector<uint8_t>> packed = pack_jpeg(file, PackLevel::kFast);
  EXPECT_TRUE(packed) << packed.error().message();
  return packed ? std::move(*packed) : Bytes();
}

void expect_same_planes(const std::vector<CoefficientPlane>& got,
                        const std::vector<CoefficientPlane>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t c = 0; c < got.size(); ++c) {
    EXPECT_EQ(got[c].blocks_wide, expected[c].blocks_wide);
    EXPECT_EQ(got[c].blocks_high, expected[c].blocks_high);
    EXPECT_EQ(got[c].h_sampling, expected[c].h_sampling);
    EXPECT_EQ(got[c].v_sampling, expected[c].v_sampling);
    EXPECT_EQ(got[c].quantization, expected[c].quantization);
    ASSERT_EQ(got[c].coefficients, expected[c].coefficients) << "component " << c;
  }
}

class PackedJpeg : public testing::TestWithParam<SimdForm> {
 protected:
  void SetUp() override { set_simd_form(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

// One for all files of a test: state must not leak from one image to the next.
class Comparison {
 public:
  // Compares pixels in every color mode, whole and in windows; coefficients; the file.
  void compare(const Bytes& file, const Bytes& bytes, int windows) {
    ASSERT_TRUE(is_packed_jpeg(bytes));
    const bool gray = plain_.header(file)->channels == 1;
    const Pixels expected = oracle(file, gray ? JCS_GRAYSCALE : JCS_RGB);
    ASSERT_TRUE(expected.ok);
    Pixels got = packed_.whole(bytes, ColorMode::kStored);
    ASSERT_TRUE(got.ok) << got.error;
    const Pixels stored = got;
    invert_ink(got);
    ASSERT_EQ(got.data, expected.data);
    ASSERT_EQ(packed_.whole(bytes, ColorMode::kRGB, true).data, plain_.whole(file).data);
    ASSERT_EQ(packed_.whole(bytes, ColorMode::kGray).data,
              plain_.whole(file, ColorMode::kGray).data);
    compare_windows(bytes, stored, windows);
    Result<std::vector<CoefficientPlane>> planes = packed_.coefficients(bytes);
    Result<std::vector<CoefficientPlane>> library = plain_.coefficients(file);
    ASSERT_TRUE(planes && library);
    expect_same_planes(*planes, *library);
    const Result<std::vector<uint8_t>> again = unpack_jpeg(bytes);
    ASSERT_TRUE(again) << again.error().message();
    ASSERT_EQ(*again, file);
    in_ += file.size();
    out_ += bytes.size();
  }
  // The whole image and one window, with each form of SIMD code.
  void compare_forms(const Bytes& bytes, std::span<const SimdForm> forms) {
    const Pixels expected = packed_.whole(bytes, ColorMode::kStored);
    for (const SimdForm form : forms) {
      SCOPED_TRACE(name_of(form));
      set_simd_form(form);
      ASSERT_EQ(packed_.whole(bytes, ColorMode::kStored).data, expected.data);
      compare_windows(bytes, expected, 1);
    }
  }
  double growth() const { return double(out_) / double(in_); }

 private:
  void compare_windows(const Bytes& bytes, const Pixels& expected, int windows) {
    for (int i = 0; i < windows; ++i) {
      const Window w = draw_.window(expected.width, expected.height);
      Pixels part = packed_.window(bytes, w, ColorMode::kStored, expected.channels);
      ASSERT_EQ(part.data, expected.slice(w).data)
          << w.width << "x" << w.height << " at " << w.x << "," << w.y;
    }
  }
  static void invert_ink(Pixels& pixels) {
    if (pixels.channels != 4) return;
    for (uint8_t& value : pixels.data) value = uint8_t(255 - value);
  }
  Decoder plain_;
  PackedDecoder packed_;
  Draw draw_{11};
  size_t in_ = 0, out_ = 0;
};

TEST_P(PackedJpeg, GivesLibjpegTurbosPixelsAndRestoresTheFile) {
  Comparison comparison;
  for (const FileSpec& spec : all_specs()) {
    SCOPED_TRACE(std::to_string(spec.width) + "x" + std::to_string(spec.height) + " of " +
                 std::to_string(spec.sampling.size()) + ", first " +
                 std::to_string(spec.sampling[0].h) + "x" + std::to_string(spec.sampling[0].v));
    const Bytes file = encode(spec);
    comparison.compare(file, packed(file), 12);
    if (HasFatalFailure()) return;
  }
}

TEST_P(PackedJpeg, HoldsRowsLongerThan64KB) {
  const Bytes file = encode({.width = 20000, .height = 9, .sampling = {{1, 1}}, .quality = 100});
  Comparison().compare(file, packed(file), 5);
}

// Tests everything about a file at one SIMD level, and its pixels at all levels. The scalar level
// is slow.
TEST(PackedJpegFiles, GiveTheSameAtEverySimdLevel) {
  const char* root = std::getenv("HEADRACE_TEST_DATA");
  if (!root) GTEST_SKIP() << "HEADRACE_TEST_DATA is not set";
  const std::vector<SimdForm> all = available_forms();
  const std::span<const SimdForm> fast = std::span(all).subspan(all.size() > 1 ? 1 : 0);
  Comparison comparison;
  int64_t found = 0;
  int files = 0, kept = 0;
  for (const char* folder : {"photos", "jpeg_variants", "coco", "photos_camera"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(root) / folder)) {
      if (!entry.is_regular_file() || found++ % kSweepStep != 0) continue;
      SCOPED_TRACE(entry.path().string());
      const size_t number = size_t(files + kept);
      const bool every_form = number % 10 == 0;
      set_simd_form(every_form ? all[number / 10 % all.size()] : fast[number % fast.size()]);
      std::ifstream in(entry.path(), std::ios::binary);
      const Bytes file(std::istreambuf_iterator<char>(in), {});
      const Result<std::vector<uint8_t>> packed = pack_jpeg(file, PackLevel::kFast);
      if (!packed) {
        ++kept;
        continue;
      }
      ++files;
      comparison.compare(file, *packed, 3);
      if (HasFatalFailure()) return;
      comparison.compare_forms(*packed, every_form ? std::span(all) : fast);
      if (HasFatalFailure()) return;
    }
  }
  set_simd_level(available_levels().back());
  EXPECT_GT(files, kept);
  EXPECT_LT(comparison.growth(), 1.14);
  RecordProperty("packed", files);
  RecordProperty("kept", kept);
}

INSTANTIATE_TEST_SUITE_P(Levels, PackedJpeg, testing::ValuesIn(available_forms()),
                         [](const auto& info) {
                           std::string name(name_of(info.param));
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(PackedJpegCodec, KeepsTheOrientation) {
  // An EXIF segment with nothing but the orientation, as TIFF (EXIF 2.3, 4.6.4).
  Bytes file = encode({.width = 20, .height = 10});
  const Bytes exif = {0xFF, 0xE1, 0, 34, 'E', 'x', 'i', 'f', 0,    0,    'M', 'M',
                      0,    42,   0, 0,  0,   8,   0,   1,   0x01, 0x12, 0,   3,
                      0,    0,    0, 1,  0,   6,   0,   0,   0,    0,    0,   0};
  file.insert(file.begin() + 2, exif.begin(), exif.end());
  const Result<ImageHeader> header = PackedDecoder().header(packed(file));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->exif_orientation, 6);
  EXPECT_EQ(header->width, 20);
  EXPECT_EQ(header->height, 10);
}

TEST(PackedJpegCodec, StatesWhyAFileCannotBePacked) {
  const Bytes good = encode({});
  for (const Bytes& file :
       {Bytes(), Bytes{0xFF, 0xD8, 0xFF}, Bytes(good.begin(), good.begin() + good.size() / 2)}) {
    const Result<std::vector<uint8_t>> result = pack_jpeg(file, PackLevel::kFast);
    ASSERT_FALSE(result);
    EXPECT_FALSE(result.error().what.empty());
    EXPECT_LT(result.error().what.size(), 60u);
  }
}

// --- Damage -----------------------------------------------------------------------------------

std::vector<Bytes> images_to_damage() {
  FileSpec large{.width = 300, .height = 90, .quality = 98};
  return {packed(encode(large)), packed(encode({.width = 40, .height = 33})),
          packed(encode(gray(17, 30))), packed(encode(cmyk(true, JCS_YCCK)))};
}

TEST(PackedJpegDamage, TruncatedAnywhereIsAnErrorWithAnOffset) {
  PackedDecoder decoder;
  for (const Bytes& whole : images_to_damage()) {
    for (int i = 0; i < 64; ++i) {
      const Bytes cut(whole.begin(), whole.begin() + ptrdiff_t(whole.size() * i / 64));
      EXPECT_FALSE(decoder.header(cut));
      const Pixels pixels = decoder.window(cut, {0, 0, 1, 1});
      EXPECT_FALSE(pixels.ok);
      EXPECT_EQ(decoder.last_code(), "HR0320");
      EXPECT_GE(decoder.last_error.where.offset, 0);
      EXPECT_FALSE(decoder.coefficients(cut));
      EXPECT_FALSE(unpack_jpeg(cut));
    }
  }
}

TEST(PackedJpegDamage, ToAnyBitOfTheHeaderAndTablesIsHarmless) {
  PackedDecoder decoder;
  for (const Bytes& whole : images_to_damage()) {
    const int width = decoder.header(whole)->width, height = decoder.header(whole)->height;
    const int bits = width > 100 ? 2 : 8;  // large images are slow
    for (size_t at = 0; at < std::min<size_t>(whole.size(), 420); ++at) {
      for (int bit = 0; bit < 8; bit += 8 / bits) {
        Bytes damaged = whole;
        damaged[at] ^= uint8_t(1 << bit);
        const Result<ImageHeader> header = decoder.header(damaged);
        if (header && header->width == width && header->height == height) {
          decoder.whole(damaged);
          decoder.window(damaged, {width / 2, height / 2, 1 + width / 3, 1 + height / 3});
        }
        (void)decoder.coefficients(damaged);
        (void)unpack_jpeg(damaged);
      }
    }
  }
}

TEST(PackedJpegDamage, ToTheRowsIsHarmlessAndTheSameAtEverySimdLevel) {
  PackedDecoder decoder;
  Draw draw(12);
  for (const Bytes& whole : images_to_damage()) {
    for (int round = 0; round < 300; ++round) {
      Bytes damaged = whole;
      for (int i = draw.below(4); i >= 0; --i) {
        damaged[300 + draw.below(int(whole.size()) - 300)] = uint8_t(draw.below(256));
      }
      set_simd_level(SimdLevel::kScalar);
      const Pixels expected = decoder.whole(damaged);
      for (const SimdForm form : available_forms()) {
        set_simd_form(form);
        const Pixels got = decoder.whole(damaged);
        ASSERT_EQ(got.ok, expected.ok);
        ASSERT_TRUE(!got.ok || got.data == expected.data);
      }
    }
  }
}

TEST(PackedJpegDamage, OfALaterVersionIsReportedAsSuch) {
  PackedDecoder decoder;
  const Bytes whole = packed(encode({}));
  for (const auto& [at, value] :
       std::vector<std::pair<int, int>>{{8, 2}, {9, 4}, {9, 128}, {18, 1}}) {
    Bytes newer = whole;
    newer[at] = uint8_t(value);
    decoder.window(newer, {0, 0, 1, 1});
    EXPECT_EQ(decoder.last_code(), "HR0321");
  }
}

TEST(PackedJpegDamage, NeverAllocatesOutOfProportionToTheFile) {
  PackedDecoder decoder;
  Bytes huge = packed(encode(gray(16, 16)));
  huge[12] = huge[13] = huge[14] = huge[15] = 0xFF;  // 65535 x 65535
  EXPECT_FALSE(decoder.header(huge));
  EXPECT_FALSE(decoder.coefficients(huge));
}

}  // namespace
}  // namespace headrace::jpeg_test
