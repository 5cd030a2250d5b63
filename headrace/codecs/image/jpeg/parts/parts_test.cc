// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/parts/parts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "headrace/codecs/image/jpeg/parts/parts_test_files.h"

namespace headrace {
namespace {

using jpeg_test::Bytes;
using jpeg_test::Factors;
using jpeg_test::FileSpec;

class JpegPartsTest : public testing::Test {
 protected:
  // Splits and joins the file, and compares the coefficients with libjpeg's.
  void expect_round_trip(const Bytes& file) {
    const Result<JpegParts> parts = split_jpeg(file);
    ASSERT_TRUE(parts) << parts.error().message();
    const Result<Bytes> again = join_jpeg(*parts);
    ASSERT_TRUE(again) << again.error().message();
    ASSERT_EQ(*again, file);
    expect_libjpegs_coefficients(*parts, file);
  }
  void expect_libjpegs_coefficients(const JpegParts& parts, const Bytes& file) {
    const Result<std::vector<CoefficientPlane>> planes = decoder_.coefficients(file);
    ASSERT_TRUE(planes) << planes.error().message();
    ASSERT_EQ(parts.planes.size(), planes->size());
    for (size_t c = 0; c < planes->size(); ++c) {
      const CoefficientPlane &plane = parts.planes[c], &expected = (*planes)[c];
      ASSERT_EQ(plane.blocks_wide, expected.blocks_wide);
      ASSERT_EQ(plane.blocks_high, expected.blocks_high);
      EXPECT_EQ(plane.h_sampling, expected.h_sampling);
      EXPECT_EQ(plane.v_sampling, expected.v_sampling);
      EXPECT_EQ(plane.quantization, expected.quantization);
      EXPECT_EQ(parts.frame.component[c].quantization, expected.quantization);
      ASSERT_EQ(plane.coefficients, expected.coefficients);
    }
  }
  void expect_reason(const Bytes& file, std::string_view reason) {
    const Result<JpegParts> parts = split_jpeg(file);
    ASSERT_FALSE(parts);
    EXPECT_EQ(parts.error().what, reason);
    EXPECT_EQ(parts.error().code->id, "HR0326");
  }
  jpeg_test::Decoder decoder_;
};

constexpr uint8_t kEdgeItem = 3;  // the remainder's item that stores such blocks

TEST_F(JpegPartsTest, EverySamplingScriptAndRestartIntervalIsRestored) {
  for (const std::vector<Factors>& sampling : test_samplings()) {
    for (const JpegScript& script : scripts_for(int(sampling.size()))) {
      for (const int interval : {0, 1, 2, 5, 1000}) {
        for (const bool optimize : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << sampling.size() << " components, " << sampling[0].h << "x"
                       << sampling[0].v << ", " << script.name << ", restart " << interval
                       << (optimize ? ", optimized" : ""));
          FileSpec spec{.width = 75, .height = 53, .sampling = sampling};
          spec.restart_interval = interval;
          if (sampling.size() == 4) spec.file_space = JCS_YCCK;
          expect_round_trip(encode_with(spec, script, optimize));
        }
      }
    }
  }
}

TEST_F(JpegPartsTest, EverySmallSizeIsRestored) {
  for (const std::vector<Factors>& sampling :
       {std::vector<Factors>{{1, 1}}, {{2, 2}, {1, 1}, {1, 1}}, {{4, 1}, {1, 1}, {1, 1}}}) {
    for (int height = 1; height <= 18; ++height) {
      for (int width = 1; width <= 34; ++width) {
        SCOPED_TRACE(testing::Message() << width << " x " << height);
        FileSpec spec{.width = width, .height = height, .sampling = sampling};
        expect_round_trip(jpeg_test::encode(spec));
        spec.progressive = true;
        expect_round_trip(jpeg_test::encode(spec));
      }
    }
  }
}

TEST_F(JpegPartsTest, EveryQualityIsRestored) {
  for (const int quality : {1, 5, 25, 50, 75, 95, 100}) {
    for (const bool progressive : {false, true}) {
      expect_round_trip(jpeg_test::encode(
          {.width = 130, .height = 90, .progressive = progressive, .quality = quality}));
    }
  }
}

// The example of docs/spec/jpeg-remainder.md.
TEST_F(JpegPartsTest, AnOrdinaryFileHas25BytesOfOverhead) {
  const Bytes expected = {1,    4, 0xDB, 1,    8, 0xDB, 1,    0x11, 0xC0, 0,    0xC4, 1,   8,
                          0xC4, 1, 0x14, 0xC4, 1, 0x19, 0xC4, 1,    0x25, 0xDA, 0,    0xD9};
  EXPECT_EQ(split_jpeg(jpeg_test::encode({.width = 17}))->remainder, expected);
}

// libjpeg ends a run of blocks early when its buffer of 1,000 correction bits may become too small.
TEST_F(JpegPartsTest, RunsEndedByPendingCorrectionsAreRestored) {
  for (const int quality : {10, 40, 75, 90}) {
    FileSpec spec{.width = 320, .height = 200, .quality = quality};
    for (const int interval : {0, 30}) {
      spec.restart_interval = interval;
      const Bytes file = doubled(jpeg_test::encode(spec));
      expect_round_trip(file);
      // Padding is as predicted: only the last scan's header is between its marker and the end
      // marker.
      const Bytes remainder = split_jpeg(file)->remainder;
      EXPECT_EQ(remainder[remainder.size() - 9], 0xDA);
      EXPECT_EQ(remainder[remainder.size() - 8], 1);
    }
  }
}

// Longer than the 32,767 blocks that one symbol can end.
TEST_F(JpegPartsTest, LongRunsOfEmptyBlocksAreRestored) {
  FileSpec spec{.width = 2400, .height = 1600, .sampling = {{1, 1}}, .quality = 2};
  spec.progressive = true;
  expect_round_trip(encode_flat(spec, 128));
  expect_round_trip(encode_flat(spec, 31));
}

TEST_F(JpegPartsTest, ColorSpacesEqualLibjpegsGuess) {
  const auto color_of = [](const FileSpec& spec) {
    return split_jpeg(jpeg_test::encode(spec))->frame.color;
  };
  EXPECT_EQ(color_of(jpeg_test::gray(9, 9)), JpegColor::kGray);
  EXPECT_EQ(color_of({}), JpegColor::kYCbCr);
  EXPECT_EQ(color_of({.sampling = {{1, 1}, {1, 1}, {1, 1}}, .file_space = JCS_RGB}),
            JpegColor::kRGB);
  EXPECT_EQ(color_of(jpeg_test::cmyk(true, JCS_CMYK)), JpegColor::kCMYK);
  EXPECT_EQ(color_of(jpeg_test::cmyk(true, JCS_YCCK)), JpegColor::kYCCK);
}

TEST_F(JpegPartsTest, BytesAfterTheEndAreRestored) {
  Bytes file = jpeg_test::encode({});
  const Bytes other = jpeg_test::encode(jpeg_test::gray(20, 20));
  file.insert(file.end(), other.begin(), other.end());
  file.insert(file.end(), {0xFF, 0xFF, 0x00});
  expect_round_trip(file);
}

TEST_F(JpegPartsTest, FillBytesAndMeaninglessMarkersAreRestored) {
  const Bytes plain = jpeg_test::encode({.progressive = true});
  for (const int marker : {0xC4, 0xDA, 0xDB, 0xC2, 0xD9}) {
    for (const size_t at : jpeg_test::marker_offsets(plain, marker)) {
      Bytes file = plain;
      file.insert(file.begin() + ptrdiff_t(at), {0xFF, 0xFF, 0xFF});  // fill bytes
      expect_round_trip(file);
      file.insert(file.begin() + ptrdiff_t(at), {0xFF, 0xD3, 0xFF, 0x01});  // RST3, TEM
      expect_round_trip(file);
      file.insert(file.begin() + ptrdiff_t(at), {0xFF, 0xFE, 0, 2});           // an empty comment
      file.insert(file.begin() + ptrdiff_t(at), {0xFF, 0xEA, 0, 5, 1, 2, 3});  // APP10
      expect_round_trip(file);
    }
  }
}

TEST_F(JpegPartsTest, RepeatedTablesAreRestored) {
  const Bytes plain = jpeg_test::encode({});
  for (const int marker : {0xC4, 0xDB}) {
    const size_t at = jpeg_test::marker_offsets(plain, marker)[0];
    const size_t length = 2 + (size_t(plain[at + 2]) << 8 | plain[at + 3]);
    const Bytes segment(plain.begin() + ptrdiff_t(at), plain.begin() + ptrdiff_t(at + length));
    Bytes file = plain;
    file.insert(file.begin() + ptrdiff_t(at), segment.begin(), segment.end());
    file[at + 10] ^= 1;  // the first of the two is a different table, which is overridden
    if (marker == 0xDB) expect_round_trip(file);
    const size_t after = jpeg_test::marker_offsets(plain, 0xD9).back();
    file = plain;
    file.insert(file.begin() + ptrdiff_t(after), segment.begin(), segment.end());
    expect_round_trip(file);
  }
}

// Encoders other than libjpeg pad the last byte with zeros, or with leftover bits.
TEST_F(JpegPartsTest, AnyPaddingBitsAreRestored) {
  FileSpec spec{.width = 60, .height = 40, .sampling = {{1, 1}}};
  spec.restart_interval = 3;
  for (const bool progressive : {false, true}) {
    spec.progressive = progressive;
    const Bytes plain = jpeg_test::encode(spec);
    Bytes zeros = plain, mixed = plain;
    const std::vector<size_t> ends = interval_ends(plain);
    ASSERT_GT(ends.size(), 10u);
    for (size_t i = ends.size(); i-- > 0;) {  // from the end, because bytes may be removed
      clear_padding(zeros, ends[i]);
      if (i % 2) clear_padding(mixed, ends[i]);
    }
    EXPECT_NE(zeros, plain);
    EXPECT_NE(mixed, zeros);
    expect_round_trip(zeros);
    expect_round_trip(mixed);
  }
}

// A crop that only changes the size in the header leaves ordinary blocks beyond the edge; cameras
// write such files.
TEST_F(JpegPartsTest, AnyBlocksBeyondTheEdgeAreRestored) {
  for (const std::vector<Factors>& sampling : test_samplings()) {
    if (sampling.size() < 3) continue;
    FileSpec spec{.width = 64, .height = 64, .sampling = sampling};
    if (sampling.size() == 4) spec.file_space = JCS_YCCK;
    int h = 1, v = 1;
    for (const Factors& f : sampling) h = std::max(h, f.h), v = std::max(v, f.v);
    Bytes file = jpeg_test::encode(spec);
    set_size(file, 64 - 8 * h + 1, 64 - 8 * v + 1);  // as many MCUs as before
    SCOPED_TRACE(testing::Message() << h << "x" << v);
    expect_round_trip(file);
    const auto parts = split_jpeg(file);
    EXPECT_EQ(parts->remainder[1] == kEdgeItem, h * v > 1);
  }
}

// Only DC scans of progressive files contain such blocks, and spread their bits over several scans.
TEST_F(JpegPartsTest, AnyProgressiveBlocksBeyondTheEdgeAreRestored) {
  FileSpec spec{.width = 37, .height = 41};  // 4:2:0: 5 x 6 blocks of luminance in 6 x 6
  for (const JpegScript& script : scripts_for(3)) {
    if (!script.interleaved) continue;
    SCOPED_TRACE(script.name);
    Result<JpegParts> parts = split_jpeg(encode_with(spec, script, false));
    ASSERT_TRUE(parts);
    // Two blocks, the first and the fourth: 37 more than predicted, and 16 less; no AC.
    const Bytes edge = {kEdgeItem, 2, 0, 74, 0, 2, 31, 0, 0, 0};
    ASSERT_NE(parts->remainder[1], kEdgeItem);
    parts->remainder.insert(parts->remainder.begin() + 1, edge.begin(), edge.end());
    const Result<Bytes> file = join_jpeg(*parts);
    ASSERT_TRUE(file) << file.error().message();
    expect_libjpegs_coefficients(*parts, *file);
    expect_round_trip(*file);
    EXPECT_EQ(split_jpeg(*file)->remainder, parts->remainder);
  }
}

// Other encoders may end a run of empty blocks at any time, down to one symbol per block.
TEST_F(JpegPartsTest, RunsThatEndEarlyAreRestored) {
  FileSpec spec{.width = 200, .height = 160, .sampling = {{1, 1}}};
  // Six empty blocks of seven.
  const auto sample = [](int x, int y, int c) {
    return x / 8 % 7 == 0 ? jpeg_test::test_sample(x, y, c) : uint8_t(100);
  };
  int longer = 0;
  for (const JpegScript& script : scripts_for(1)) {
    if (script.scans.back().Ss == 0) continue;
    SCOPED_TRACE(script.name);
    Result<JpegParts> parts = split_jpeg(encode_with(spec, script, false, sample));
    ASSERT_TRUE(parts);
    give_last_scan_all_codes(parts->remainder);
    const Result<Bytes> usual = join_jpeg(*parts);
    ASSERT_TRUE(usual) << usual.error().message();
    // At the end of the last scan: eight positions, with a gap of 9 blocks between them.
    Bytes& remainder = parts->remainder;
    remainder[remainder.size() - 8] |= 8;
    const Bytes breaks = {8, 9, 9, 9, 9, 9, 9, 9, 9};
    remainder.insert(remainder.end() - 1, breaks.begin(), breaks.end());
    const Result<Bytes> file = join_jpeg(*parts);
    ASSERT_TRUE(file) << file.error().message();
    longer += file->size() > usual->size();
    expect_libjpegs_coefficients(*parts, *file);
    expect_round_trip(*file);
  }
  EXPECT_GT(longer, 4);
}

TEST_F(JpegPartsTest, FilesThatAreNotConvertedHaveAKnownReason) {
  const Bytes file = jpeg_test::encode({}), progressive = jpeg_test::encode({.progressive = true});
  const auto patched = [](Bytes bytes, int marker, size_t offset,
                          std::initializer_list<int> values) {
    size_t at = jpeg_test::marker_offsets(bytes, marker)[0] + offset;
    for (const int value : values) bytes[at++] = uint8_t(value);
    return bytes;
  };
  expect_reason({}, "no JPEG");
  expect_reason({'B', 'M', 0, 0, 0}, "no JPEG");
  expect_reason(jpeg_test::encode({.arithmetic = true}), "arithmetic coding");
  expect_reason(patched(file, 0xC0, 1, {0xC3}), "lossless");
  expect_reason(patched(file, 0xC0, 1, {0xC5}), "hierarchical");
  expect_reason(patched(file, 0xC0, 4, {12}), "12 bits");
  expect_reason(patched(file, 0xC0, 5, {0, 0}), "image size");
  expect_reason(patched(file, 0xC0, 5, {0x60, 0, 0x60, 0}), "image size");  // 604 megapixels
  expect_reason(patched(file, 0xC0, 5, {0x20, 0, 0x20, 0}), "truncated");
  expect_reason(patched(file, 0xC0, 14, {0x32}), "sampling factors");
  expect_reason(patched(file, 0xDB, 1, {0xF0}), "unknown marker");
  expect_reason(patched(file, 0xDB, 4, {0x25}), "damaged tables");
  expect_reason(patched(file, 0xDA, 12, {62}), "scan parameters");
  expect_reason(Bytes(file.begin(), file.end() - 2), "no end marker");
  expect_reason(Bytes(file.begin(), file.end() - 200), "truncated");
  expect_reason(Bytes(file.begin(), file.begin() + 30), "truncated");

  Bytes bad = file;
  bad.insert(bad.end() - 2, {0, 0, 0});
  expect_reason(bad, "bytes after a scan");
  bad = file;
  bad.insert(bad.begin() + 2, {1, 2});
  expect_reason(bad, "bytes between segments");
  bad = file;
  bad.insert(bad.begin() + 2, {0xFF, 0xD8});
  expect_reason(bad, "damaged header");

  const std::vector<size_t> scans = jpeg_test::marker_offsets(progressive, 0xDA);
  bad.assign(progressive.begin(), progressive.begin() + ptrdiff_t(scans.back()));
  bad.insert(bad.end(), {0xFF, 0xD9});
  expect_reason(bad, "missing scans");

  FileSpec restarts{.restart_interval = 2};
  bad = jpeg_test::encode(restarts);
  bad[jpeg_test::marker_offsets(bad, 0xD1)[0] + 1] = 0xD2;
  expect_reason(bad, "restart markers");
}

// Explicit zeros up to the last coefficient mean the same and take more bits: this cannot be
// predicted from the rest of the file.
TEST_F(JpegPartsTest, UnusualCodesAreNotConverted) {
  // Gray, 8 x 8; AC code 0 = sixteen zeros, 10 = end of block; DC code 0 = no
  // difference.
  Bytes file = {0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0};
  file.insert(file.end(), 64, 1);
  file.insert(file.end(), {0xFF, 0xC0, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0});
  file.insert(file.end(),
              {0xFF, 0xC4, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  file.insert(file.end(),
              {0xFF, 0xC4, 0, 21, 16, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xF0, 0});
  file.insert(file.end(), {0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0});
  const Bytes header = file;
  file.insert(file.end(), {0b01011111, 0xFF, 0xD9});  // DC 0, end of block
  expect_round_trip(file);
  file = header;
  file.insert(file.end(), {0b00101111, 0xFF, 0xD9});  // DC 0, sixteen zeros, end of block
  ASSERT_TRUE(decoder_.coefficients(file));
  expect_reason(file, "does not re-encode");
}

TEST_F(JpegPartsTest, DamagedPartsAreAnError) {
  FileSpec spec{.width = 41, .height = 30};
  spec.restart_interval = 2;
  for (const bool progressive : {false, true}) {
    spec.progressive = progressive;
    const Result<JpegParts> parts = split_jpeg(jpeg_test::encode(spec));
    ASSERT_TRUE(parts);
    const Bytes& whole = parts->remainder;
    for (size_t length = 0; length + 1 < whole.size(); ++length) {
      JpegParts cut = *parts;
      cut.remainder.assign(whole.begin(), whole.begin() + ptrdiff_t(length));
      const Result<Bytes> joined = join_jpeg(cut);
      ASSERT_FALSE(joined) << length;
      EXPECT_EQ(joined.error().code->id, "HR0325");
    }
    for (size_t at = 0; at < whole.size(); ++at) {
      for (const int value : {0, 1, 2, 63, 127, 128, 192, 254, 255}) {
        JpegParts changed = *parts;
        changed.remainder[at] = uint8_t(value);
        (void)join_jpeg(changed);
      }
    }
  }
}

TEST_F(JpegPartsTest, PartsThatDoNotBelongTogetherAreAnError) {
  const Result<JpegParts> parts = split_jpeg(jpeg_test::encode({}));
  ASSERT_TRUE(parts);
  const auto expect_refused = [](const JpegParts& changed) {
    const Result<Bytes> joined = join_jpeg(changed);
    ASSERT_FALSE(joined);
    EXPECT_EQ(joined.error().code->id, "HR0325");
    EXPECT_FALSE(baseline_jpeg(changed) && changed.remainder.empty());
  };
  JpegParts changed = *parts;
  changed.planes.pop_back();
  expect_refused(changed);
  changed = *parts;
  changed.planes[0].coefficients.pop_back();
  expect_refused(changed);
  changed = *parts;
  changed.planes[0].blocks_wide = -1;
  expect_refused(changed);
  changed = *parts;
  changed.frame.width += 8;
  expect_refused(changed);
  changed = *parts;
  changed.frame.count = 1000;
  expect_refused(changed);
  changed = *parts;
  changed.planes[1].coefficients[5] = -32768;  // no code can be this long
  expect_refused(changed);
  EXPECT_FALSE(baseline_jpeg(changed));
}

}  // namespace
}  // namespace headrace
