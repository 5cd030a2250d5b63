// SPDX-License-Identifier: Apache-2.0
// Our own decoder of progressive files, at every SIMD level: any legal scan script, windows,
// damage, and files passed to libjpeg.
#include "headrace/codecs/image/jpeg/decode/progressive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/kernels/dispatch.h"

namespace headrace::jpeg_test {
namespace {

using Outcome = JpegBaselineDecoder::Outcome;

class JpegProgressive : public testing::TestWithParam<SimdForm> {
 protected:
  void SetUp() override { set_simd_form(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

// A window decoded by our decoder alone.
Pixels decode_alone(JpegProgressiveDecoder& decoder, const Bytes& bytes, const Window& window,
                    Outcome* outcome = nullptr) {
  Buffer file(bytes.size());
  std::copy(bytes.begin(), bytes.end(), file.data());
  Collector sink(window.width, window.height, 3);
  DecodeJob job;
  job.bytes = file.bytes();
  job.window = window;
  job.sink = &sink;
  JpegBaselineDecoder::Task task{.job = &job};
  decoder.decode(task);
  if (outcome) *outcome = task.outcome;
  Pixels out = std::move(sink.pixels);
  out.ok = task.outcome == Outcome::kDecoded && sink.complete();
  return out;
}

std::vector<std::vector<Factors>> common_samplings() {
  return {{{1, 1}, {1, 1}, {1, 1}},
          {{2, 1}, {1, 1}, {1, 1}},
          {{2, 2}, {1, 1}, {1, 1}},
          {{1, 2}, {1, 1}, {1, 1}},
          {{4, 1}, {1, 1}, {1, 1}},
          {{2, 2}, {2, 1}, {1, 2}},
          {{1, 1}}};
}

// All bits of all coefficients, in a random order that the standard allows.
std::vector<jpeg_scan_info> random_script(Draw& draw, int components) {
  std::vector<jpeg_scan_info> script;
  const int lowest = draw.below(3);
  for (int low = lowest; low >= 0; --low) {  // DC values of some components together
    const int high = low == lowest ? 0 : low + 1;
    for (int c = 0; c < components;) {
      jpeg_scan_info scan{1 + draw.below(components - c), {}, 0, 0, high, low};
      for (int i = 0; i < scan.comps_in_scan; ++i) scan.component_index[i] = c++;
      script.push_back(scan);
    }
  }
  // After that, each band of each component progresses independently.
  struct Band {
    int component, first, last, low;
    bool begun;
  };
  std::vector<Band> bands;
  for (int c = 0; c < components; ++c) {
    for (int first = 1; first < 64;) {
      const int last = draw.below(3) ? 63 : std::min(63, first + draw.below(20));
      bands.push_back({c, first, last, draw.below(4), false});
      first = last + 1;
    }
  }
  while (!bands.empty()) {
    const size_t i = size_t(draw.below(int(bands.size())));
    Band& band = bands[i];
    const int high = band.begun ? band.low + 1 : 0;
    script.push_back({1, {band.component, 0, 0, 0}, band.first, band.last, high, band.low});
    band.begun = true;
    if (band.low-- == 0) bands.erase(bands.begin() + ptrdiff_t(i));
  }
  return script;
}

FileSpec random_file(Draw& draw) {
  FileSpec spec{.width = 1 + draw.below(140), .height = 1 + draw.below(110)};
  const auto samplings = common_samplings();
  spec.sampling = samplings[size_t(draw.below(int(samplings.size())))];
  spec.progressive = true;
  spec.quality = 1 + draw.below(100);
  spec.restart_interval = draw.below(3) ? 0 : 1 + draw.below(40);
  if (draw.below(5)) spec.scans = random_script(draw, int(spec.sampling.size()));
  return spec;
}

TEST_P(JpegProgressive, AnyLegalScriptGivesLibjpegsPixels) {
  JpegProgressiveDecoder decoder;
  Draw draw(11);
  for (int i = 0; i < 300; ++i) {
    const FileSpec spec = random_file(draw);
    if (spec.scans.size() > size_t{JpegProgressiveHeader::kMax}) continue;
    const Bytes bytes = encode(spec);
    const Pixels expected = oracle(bytes);
    ASSERT_EQ(expected.warnings, 0);
    const Pixels whole = decode_alone(decoder, bytes, {0, 0, spec.width, spec.height});
    ASSERT_TRUE(whole.ok) << i;
    ASSERT_EQ(whole.data, expected.data) << i;
    for (int n = 0; n < 4; ++n) {
      const Window window = draw.window(spec.width, spec.height);
      const Pixels part = decode_alone(decoder, bytes, window);
      ASSERT_TRUE(part.ok) << i;
      ASSERT_EQ(part.data, expected.slice(window).data) << i;
    }
  }
}

// Flat areas end their bands in runs over many blocks and rows; noise has none.
TEST_P(JpegProgressive, FilesWithLongEndOfBandRunsAndWithoutRunsEqualLibjpegs) {
  JpegProgressiveDecoder decoder;
  const FileSpec spec{.width = 700, .height = 300, .progressive = true, .quality = 97};
  const auto flat = [](int x, int y, int c) {
    return uint8_t((x / 333 * 90 + (x % 97 == 3 && y % 61 == 7 ? 100 : 0)) + c);
  };
  const auto noise = [](int x, int y, int c) {
    return uint8_t((uint32_t(x) * 2654435761u ^ uint32_t(y) * 40503u * (uint32_t(c) + 3)) >> 9);
  };
  for (const Bytes& bytes : {encode(spec, flat), encode(spec, noise)}) {
    const Pixels whole = decode_alone(decoder, bytes, {0, 0, spec.width, spec.height});
    ASSERT_TRUE(whole.ok);
    EXPECT_EQ(whole.data, oracle(bytes).data);
  }
}

TEST_P(JpegProgressive, LeavesUnusualFilesToLibjpeg) {
  JpegProgressiveDecoder decoder;
  const auto outcome_of = [&](const Bytes& bytes) {
    Outcome outcome = Outcome::kDecoded;
    decode_alone(decoder, bytes, {0, 0, 20, 20}, &outcome);
    return outcome;
  };
  const FileSpec plain{.progressive = true};
  EXPECT_EQ(outcome_of(encode(plain)), Outcome::kDecoded);
  EXPECT_EQ(outcome_of(encode({})), Outcome::kRefused);
  FileSpec arithmetic = plain;
  arithmetic.arithmetic = true;
  EXPECT_EQ(outcome_of(encode(arithmetic)), Outcome::kRefused);
  FileSpec unusual = plain;
  unusual.sampling = {{3, 1}, {1, 1}, {1, 1}};
  EXPECT_EQ(outcome_of(encode(unusual)), Outcome::kRefused);
  // Without its last scan, libjpeg smooths a file, which our decoder does not.
  FileSpec coarse = plain;
  coarse.scans = {{3, {0, 1, 2}, 0, 0, 0, 0}, {1, {0}, 1, 63, 0, 1}};
  EXPECT_EQ(outcome_of(encode(coarse)), Outcome::kRefused);
  Decoder whole;
  EXPECT_EQ(whole.whole(encode(coarse)).data, oracle(encode(coarse)).data);
}

// With fallback to libjpeg: pixels, warnings and errors are the library's own.
TEST_P(JpegProgressive, TruncatedAndMutatedFilesEqualLibjpegs) {
  Decoder decoder;
  Draw draw(23);
  const auto check = [&](const Bytes& bytes, const std::string& what) {
    const Pixels expected = oracle(bytes), got = decoder.whole(bytes);
    if (decoder.last_code() == "HR0306") return;  // scans that cost too much
    ASSERT_EQ(got.ok, expected.ok) << what;
    if (!got.ok) return;
    ASSERT_EQ(got.warnings, expected.warnings) << what;
    if (!kOverflowsAsLibjpeg) return;
    ASSERT_EQ(got.data, expected.data) << what;
    const Window window = draw.window(got.width, got.height);
    ASSERT_EQ(decoder.window(bytes, window).data, expected.slice(window).data) << what;
  };
  for (int i = 0; i < 12; ++i) {
    FileSpec spec = random_file(draw);
    spec.width = 33 + draw.below(60);
    const Bytes bytes = encode(spec);
    for (size_t part = 0; part < 64; ++part) {
      Bytes cut = bytes;
      cut.resize(bytes.size() * part / 64);
      check(cut, std::to_string(i) + ", cut at " + std::to_string(cut.size()));
    }
    for (int n = 0; n < 60; ++n) {
      Bytes wrong = bytes;
      for (int k = 1 + draw.below(3); k > 0; --k) {
        wrong[size_t(draw.below(int(wrong.size())))] = uint8_t(draw.below(256));
      }
      check(wrong, std::to_string(i) + ", mutation " + std::to_string(n));
    }
  }
}

std::string progressive_level(const testing::TestParamInfo<SimdForm>& info) {
  std::string name(name_of(info.param));
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Levels, JpegProgressive, testing::ValuesIn(available_forms()),
                         progressive_level);

}  // namespace
}  // namespace headrace::jpeg_test
