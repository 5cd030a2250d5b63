// SPDX-License-Identifier: Apache-2.0
// Our own decoder: several images at once, row indexes, and files passed to libjpeg.
#include "headrace/codecs/image/jpeg/decode/baseline.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "headrace/codecs/image/jpeg/jpeg_test_images.h"

namespace headrace::jpeg_test {
namespace {

using Outcome = JpegBaselineDecoder::Outcome;

Buffer padded(const Bytes& bytes) {
  Buffer buffer(bytes.size());
  std::copy(bytes.begin(), bytes.end(), buffer.data());
  return buffer;
}

class Store final : public RowIndexStore {
 public:
  void learned(uint64_t image, std::span<const uint8_t> row_index) override {
    EXPECT_EQ(image, 7u);
    known.assign(row_index.begin(), row_index.end());
    ++calls;
  }
  std::vector<uint8_t> known;
  int calls = 0;
};

// A window decoded by this decoder alone, with the store's index.
Pixels decode_window(JpegBaselineDecoder& decoder, const Buffer& file, const Window& window,
                     Store* store, std::span<const uint8_t> known, Outcome* outcome = nullptr) {
  Collector sink(window.width, window.height, 3);
  DecodeJob job;
  job.bytes = file.bytes();
  job.window = window;
  job.sink = &sink;
  job.row_index = {.known = known, .store = store, .image = 7};
  JpegBaselineDecoder::Task task{.job = &job};
  decoder.decode({&task, 1});
  if (outcome) *outcome = task.outcome;
  Pixels out = std::move(sink.pixels);
  out.ok = task.outcome == Outcome::kDecoded && sink.complete();
  return out;
}

std::vector<std::vector<Factors>> samplings() {
  return {{{1, 1}, {1, 1}, {1, 1}}, {{2, 1}, {1, 1}, {1, 1}}, {{2, 2}, {1, 1}, {1, 1}},
          {{1, 2}, {1, 1}, {1, 1}}, {{4, 1}, {1, 1}, {1, 1}}, {{1, 1}}};
}

TEST(JpegBaseline, AcceptsOrdinaryFilesOnly) {
  JpegBaselineDecoder decoder;
  const auto outcome_of = [&](const FileSpec& spec) {
    Outcome outcome = Outcome::kDecoded;
    const Buffer file = padded(encode(spec));
    decode_window(decoder, file, {0, 0, spec.width, spec.height}, nullptr, {}, &outcome);
    return outcome;
  };
  for (const auto& sampling : samplings()) {
    for (int restarts : {0, 1, 3, 7}) {
      EXPECT_EQ(outcome_of({.sampling = sampling, .restart_interval = restarts}),
                Outcome::kDecoded);
    }
  }
  EXPECT_EQ(outcome_of({.progressive = true}), Outcome::kRefused);
  EXPECT_EQ(outcome_of({.arithmetic = true}), Outcome::kRefused);
  EXPECT_EQ(outcome_of({.one_scan_per_component = true}), Outcome::kRefused);
  EXPECT_EQ(outcome_of(cmyk(true, JCS_YCCK)), Outcome::kRefused);
}

// More images than lanes, of all kinds, intact and damaged: each gives the same result as alone.
TEST(JpegBaseline, ImagesDecodedTogetherAreIndependent) {
  std::vector<Bytes> files;
  Draw draw(3);
  for (int i = 0; i < 40; ++i) {
    FileSpec spec{.width = 1 + draw.below(150), .height = 1 + draw.below(120)};
    spec.sampling = samplings()[draw.below(6)];
    spec.quality = 1 + draw.below(100);
    spec.restart_interval = draw.below(3) ? 0 : 1 + draw.below(9);
    spec.progressive = draw.below(6) == 0;
    files.push_back(encode(spec));
    if (draw.below(3) == 0) files.back().resize(files.back().size() - draw.below(100));
    if (draw.below(4) == 0) files.back()[files.back().size() / 2] ^= uint8_t(1 + draw.below(255));
  }
  const std::unique_ptr<ImageDecoder> decoder = Decoder::codec()->make();
  for (int first = 0; first < 40; first += 20) {
    std::vector<Buffer> bytes;
    std::vector<Pixels> expected;
    std::vector<std::unique_ptr<Collector>> sinks;
    std::vector<DecodeJob> jobs;
    for (int i = first; i < first + 20; ++i) {
      const Pixels whole = oracle(files[i]);
      if (!whole.ok) continue;
      DecodeJob job;
      job.window = draw.window(whole.width, whole.height);
      expected.push_back(whole.slice(job.window));
      bytes.push_back(padded(files[i]));
      sinks.push_back(std::make_unique<Collector>(job.window.width, job.window.height, 3));
      job.sink = sinks.back().get();
      job.repair = true;  // like the reference
      jobs.push_back(std::move(job));
    }
    for (size_t i = 0; i < jobs.size(); ++i) jobs[i].bytes = bytes[i].bytes();
    ASSERT_GT(jobs.size(), 10u);
    decoder->decode(jobs);
    for (size_t i = 0; i < jobs.size(); ++i) {
      ASSERT_TRUE(jobs[i].result.has_value());
      EXPECT_TRUE(sinks[i]->complete());
      EXPECT_EQ(sinks[i]->pixels.data, expected[i].data) << "picture " << i;
    }
  }
}

TEST(JpegBaseline, ARowIndexNeverChangesPixels) {
  JpegBaselineDecoder decoder;
  Draw draw(5);
  for (const auto& sampling : samplings()) {
    for (int restarts : {0, 1, 5, 64}) {
      FileSpec spec{.width = 123, .height = 141, .sampling = sampling};
      spec.restart_interval = restarts;
      const Bytes bytes = encode(spec);
      const Buffer file = padded(bytes);
      const Pixels expected = oracle(bytes);
      const std::vector<uint8_t> index = decoder.row_index(file.bytes());
      ASSERT_FALSE(index.empty());
      for (int i = 0; i < 30; ++i) {
        const Window window = draw.window(spec.width, spec.height);
        const Pixels got = decode_window(decoder, file, window, nullptr, index);
        ASSERT_TRUE(got.ok);
        ASSERT_EQ(got.data, expected.slice(window).data)
            << window.width << "x" << window.height << " at " << window.x << "," << window.y;
      }
    }
  }
}

// A loader builds the index as it goes: each window adds the rows down to its lower edge.
TEST(JpegBaseline, RowsFoundByOneWindowHelpTheNext) {
  JpegBaselineDecoder decoder;
  FileSpec spec{.width = 90, .height = 160, .restart_interval = 4};
  const Bytes bytes = encode(spec);
  const Buffer file = padded(bytes);
  const Pixels expected = oracle(bytes);
  Store store;
  size_t last = 0;
  const Window windows[] = {{5, 20, 40, 30}, {0, 60, 90, 40}, {10, 30, 30, 30}, {3, 100, 50, 60}};
  for (const Window& window : windows) {
    const std::vector<uint8_t> known = store.known;
    const Pixels got = decode_window(decoder, file, window, &store, known);
    ASSERT_TRUE(got.ok);
    EXPECT_EQ(got.data, expected.slice(window).data);
    EXPECT_GE(store.known.size(), last);
    last = store.known.size();
  }
  EXPECT_EQ(store.calls, 3);  // the third window is above the known rows
  EXPECT_EQ(store.known, decoder.row_index(file.bytes()));
}

TEST(JpegBaseline, AWrongRowIndexIsHarmless) {
  JpegBaselineDecoder decoder;
  const FileSpec spec{.width = 90, .height = 160};
  const Bytes bytes = encode(spec);
  const Buffer file = padded(bytes);
  const std::vector<uint8_t> index = decoder.row_index(file.bytes());
  Draw draw(9);
  for (int i = 0; i < 3000; ++i) {
    std::vector<uint8_t> wrong = index;
    for (int k = 1 + draw.below(4); k > 0; --k)
      wrong[draw.below(int(wrong.size()))] = uint8_t(draw.below(256));
    if (draw.below(4) == 0) wrong.resize(draw.below(int(wrong.size()) + 1));
    decode_window(decoder, file, draw.window(spec.width, spec.height), nullptr, wrong);
  }
  // An index of another image is rejected entirely.
  FileSpec other_spec = spec;
  other_spec.height = 200;
  const Buffer other = padded(encode(other_spec));
  const std::vector<uint8_t> foreign = decoder.row_index(other.bytes());
  const Window window{20, 100, 30, 30};
  EXPECT_EQ(decode_window(decoder, file, window, nullptr, foreign).data,
            oracle(bytes).slice(window).data);
}

// libjpeg looks a few bytes ahead and warns that they are missing, though no pixel needs them.
TEST(JpegBaseline, AMissingEndMarkerIsAWarningAsInLibjpeg) {
  for (const size_t cut : {size_t{2}, size_t{1}}) {
    Bytes bytes = encode({.width = 40, .height = 40});
    bytes.resize(bytes.size() - cut);
    Decoder decoder;
    const Pixels got = decoder.whole(bytes), expected = oracle(bytes);
    EXPECT_EQ(got.data, expected.data);
    EXPECT_EQ(got.warnings, expected.warnings);
    EXPECT_EQ(got.warnings, 1);
  }
}

TEST(JpegBaseline, OddVersionsAndTransformsAreWarningsAsInLibjpeg) {
  Bytes bytes = encode({.width = 40, .height = 40});
  constexpr size_t kMajorVersion = 11;
  ASSERT_EQ(bytes[kMajorVersion], 1);
  bytes[kMajorVersion] = 2;
  Decoder decoder;
  EXPECT_EQ(decoder.whole(bytes).warnings, oracle(bytes).warnings);
  EXPECT_EQ(decoder.whole(bytes).warnings, 1);
  // Instead of JFIF's segment one of Adobe with an unknown transform.
  constexpr uint8_t kAdobe[] = {0xFF, 0xEE, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 9};
  bytes.erase(bytes.begin() + 2, bytes.begin() + 20);
  bytes.insert(bytes.begin() + 2, std::begin(kAdobe), std::end(kAdobe));
  EXPECT_EQ(decoder.whole(bytes).data, oracle(bytes).data);
  EXPECT_EQ(decoder.whole(bytes).warnings, oracle(bytes).warnings);
  EXPECT_EQ(decoder.whole(bytes).warnings, 1);
}

// Sampling factors of a gray image do not affect its layout, but libjpeg rejects impossible ones.
TEST(JpegBaseline, ImpossibleSamplingFactorsAreRefusedEvenInGrayImages) {
  Bytes bytes = encode(gray(20, 20));
  const size_t frame = marker_offsets(bytes, 0xC0).front();
  bytes[frame + 11] = 0x3D;
  Decoder decoder;
  EXPECT_FALSE(oracle(bytes).ok);
  EXPECT_FALSE(decoder.whole(bytes).ok);
  EXPECT_EQ(decoder.last_code(), "HR0302");
}

TEST(JpegBaseline, DamagedAndUnusualFilesGetNoRowIndex) {
  JpegBaselineDecoder decoder;
  EXPECT_TRUE(decoder.row_index(padded(encode({.progressive = true})).bytes()).empty());
  Bytes cut = encode({.width = 200, .height = 200});
  cut.resize(cut.size() / 2);
  EXPECT_TRUE(decoder.row_index(padded(cut).bytes()).empty());
}

}  // namespace
}  // namespace headrace::jpeg_test
