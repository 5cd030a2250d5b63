// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/codecs/image/jpeg/device/batch_test_images.h"
#include "headrace/codecs/image/jpeg/packed/packed_jpeg.h"
#include "headrace/codecs/image/jpeg/parts/parts_test_files.h"

namespace headrace {
namespace {

using jpeg_test::Bytes;
using jpeg_test::Collector;
using jpeg_test::FileSpec;
using jpeg_test::Pixels;

Bytes with_orientation(Bytes file, int orientation) {
  const Bytes exif = {0xFF, 0xE1, 0, 34, 'E', 'x', 'i', 'f', 0, 0,
                      'M',  'M',  0, 42, 0,   0,   0,   8,   0, 1,
                      1,    18,   0, 3,  0,   0,   0,   1,   0, uint8_t(orientation),
                      0,    0,    0, 0,  0,   0};
  file.insert(file.begin() + 2, exif.begin(), exif.end());
  return file;
}

std::vector<Bytes> images() {
  std::vector<Bytes> files;
  for (const bool progressive : {false, true}) {
    for (const int interval : {0, 3}) {
      for (const int quality : {20, 85, 100}) {
        for (const std::vector<jpeg_test::Factors>& sampling :
             {std::vector<jpeg_test::Factors>{{1, 1}},
              {{1, 1}, {1, 1}, {1, 1}},
              {{2, 2}, {1, 1}, {1, 1}},
              {{2, 1}, {1, 1}, {1, 1}},
              {{1, 1}, {1, 1}, {1, 1}, {1, 1}}}) {
          FileSpec spec{.width = 321, .height = 203, .sampling = sampling, .quality = quality};
          spec.progressive = progressive;
          spec.restart_interval = interval;
          if (sampling.size() == 4) spec.file_space = JCS_YCCK, spec.adobe = true;
          files.push_back(jpeg_test::encode(spec));
          spec.width = 17;
          files.push_back(with_orientation(jpeg_test::encode(spec), 6));
        }
      }
    }
  }
  FileSpec spec{.width = 200, .height = 150, .one_scan_per_component = true};
  files.push_back(jpeg_test::encode(spec));
  return files;
}

// With the padding that every caller must provide, and a codec found by its signature.
class Opened {
 public:
  explicit Opened(const Bytes& bytes) : bytes_(bytes.size()) {
    if (!bytes.empty()) std::memcpy(bytes_.data(), bytes.data(), bytes.size());
    const CodecRecord* const codec = codec_of(bytes_.bytes());
    if (codec) decoder_ = codec->make();
    name_ = codec ? codec->name : "";
  }
  std::string_view codec() const { return name_; }
  Result<ImageHeader> header() { return decoder_->read_header(bytes_.bytes()); }
  Result<void> decode(const Window& window, ColorMode color, RowSink& sink, bool strict = false) {
    DecodeJob job = this->job(window, color, sink);
    job.strict = strict;
    decoder_->decode({&job, 1});
    warnings = job.warnings;
    return std::move(job.result);
  }
  DecodeJob job(const Window& window, ColorMode color, RowSink& sink) {
    DecodeJob job;
    job.bytes = bytes_.bytes();
    job.window = window;
    job.color = color;
    job.sink = &sink;
    return job;
  }
  ImageDecoder& decoder() { return *decoder_; }
  int warnings = 0;

 private:
  Buffer bytes_;
  std::unique_ptr<ImageDecoder> decoder_;
  std::string_view name_;
};

TEST(DenseJpeg, RestoresTheFileAndThePixels) {
  jpeg_test::Draw draw(5);
  for (const Bytes& file : images()) {
    const Result<Bytes> stored = dense_from_jpeg(file);
    ASSERT_TRUE(stored) << stored.error().message();
    const Result<Bytes> original = jpeg_from_dense(*stored);
    ASSERT_TRUE(original) << original.error().message();
    ASSERT_EQ(*original, file);

    Opened plain(file), dense(*stored);
    ASSERT_EQ(dense.codec(), "dense_jpeg");
    const Result<ImageHeader> expected = plain.header(), header = dense.header();
    ASSERT_TRUE(expected && header);
    EXPECT_EQ(header->width, expected->width);
    EXPECT_EQ(header->height, expected->height);
    EXPECT_EQ(header->channels, expected->channels);
    EXPECT_EQ(header->exif_orientation, expected->exif_orientation);
    for (int i = 0; i < 8; ++i) {
      const Window window = i ? draw.window(header->width, header->height)
                              : Window{0, 0, header->width, header->height};
      const auto color = ColorMode(i % 3);
      const int channels = channels_of(color, *header);
      Collector want(window.width, window.height, channels);
      Collector got(window.width, window.height, channels);
      ASSERT_TRUE(plain.decode(window, color, want));
      ASSERT_TRUE(dense.decode(window, color, got, i % 2));
      ASSERT_EQ(got.pixels.data, want.pixels.data);
      EXPECT_EQ(dense.warnings, 0);
    }
  }
}

// The contents of packs written by earlier versions.
TEST(DenseJpeg, OfVersion1IsReadWithItsRowIndex) {
  const Bytes file = jpeg_test::encode({.width = 321, .height = 203});
  const Bytes rows = jpeg_test::rows_alone(file, jpeg_test::fine_index(file));
  Bytes stored = {0x8A, 'H', 'R', 'J', 1, 0, uint8_t(rows.size() | 128), uint8_t(rows.size() >> 7)};
  stored.insert(stored.end(), rows.begin(), rows.end());
  stored.insert(stored.end(), file.begin(), file.end());
  const Result<Bytes> original = jpeg_from_dense(stored);
  ASSERT_TRUE(original) << original.error().message();
  EXPECT_EQ(*original, file);
  const auto view = view_of_dense(stored);
  ASSERT_TRUE(view);
  EXPECT_TRUE(std::ranges::equal(view->row_index, rows));
  const Window window{100, 90, 150, 60};
  Collector want(window.width, window.height, 3), got(window.width, window.height, 3);
  ASSERT_TRUE(Opened(file).decode(window, ColorMode::kRGB, want));
  ASSERT_TRUE(Opened(stored).decode(window, ColorMode::kRGB, got));
  EXPECT_EQ(got.pixels.data, want.pixels.data);
  stored[4] = 3;
  EXPECT_FALSE(jpeg_from_dense(stored));
}

TEST(DenseJpeg, IsAboutAsSmallAsTheFile) {
  for (const Bytes& file : images()) {
    const Result<Bytes> stored = dense_from_jpeg(file);
    ASSERT_TRUE(stored);
    const size_t index = view_of_dense(*stored)->row_index.size();
    EXPECT_LT(stored->size() - index, file.size() * 108 / 100 + 64);
    // Narrow images have many rows for their size.
    EXPECT_LE(index, 12 + 12 * size_t{203 / 8 + 1} + file.size() / 100);
  }
}

// Optimized tables, and standard ones that need not be stored.
TEST(DenseJpeg, ASmallFileGetsSmaller) {
  const Bytes file = jpeg_test::encode({.width = 32, .height = 32});
  EXPECT_LT(dense_from_jpeg(file)->size(), file.size() * 5 / 6);
}

TEST(DenseJpeg, CoefficientsEqualThoseOfTheFile) {
  const Bytes file = jpeg_test::encode({.progressive = true});
  Opened plain(file), dense(*dense_from_jpeg(file));
  Buffer bytes;
  const auto of = [&](const Bytes& from) {
    bytes.resize(from.size());
    std::memcpy(bytes.data(), from.data(), from.size());
    return bytes.bytes();
  };
  const auto expected = plain.decoder().coefficients(of(file));
  const auto got = dense.decoder().coefficients(of(*dense_from_jpeg(file)));
  ASSERT_TRUE(expected && got);
  ASSERT_EQ(expected->size(), got->size());
  for (size_t c = 0; c < got->size(); ++c) {
    EXPECT_EQ((*got)[c].coefficients, (*expected)[c].coefficients);
    EXPECT_EQ((*got)[c].quantization, (*expected)[c].quantization);
  }
}

TEST(DenseJpeg, FilesThatCannotBeConvertedAreRejectedWithAReason) {
  const Bytes file = jpeg_test::encode({});
  const auto reason = [](const Bytes& bytes) {
    const Result<Bytes> stored = dense_from_jpeg(bytes);
    return stored ? "none" : stored.error().what;
  };
  EXPECT_EQ(reason(jpeg_test::encode({.arithmetic = true})), "arithmetic coding");
  EXPECT_EQ(reason(Bytes(file.begin(), file.end() - 100)), "truncated");
  EXPECT_EQ(reason({}), "no JPEG");
}

TEST(DenseJpeg, DecodesManyAtOnceAndDamageStaysLocal) {
  std::vector<Bytes> files;
  for (int width = 20; width < 300; width += 20) {
    files.push_back(*dense_from_jpeg(jpeg_test::encode({.width = width, .height = 90})));
  }
  files[3].resize(7);
  std::vector<std::unique_ptr<Opened>> opened;
  std::vector<std::unique_ptr<Collector>> sinks;
  std::vector<DecodeJob> jobs;
  for (size_t i = 0; i < files.size(); ++i) {
    const int width = 20 + 20 * int(i);
    opened.push_back(std::make_unique<Opened>(files[i]));
    sinks.push_back(std::make_unique<Collector>(width, 90, 3));
    jobs.push_back(opened[i]->job({0, 0, width, 90}, ColorMode::kRGB, *sinks[i]));
  }
  opened[0]->decoder().decode(jobs);
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (i == 3) {
      ASSERT_FALSE(jobs[i].result);
      EXPECT_EQ(jobs[i].result.error().code->id, "HR0327");
      continue;
    }
    ASSERT_TRUE(jobs[i].result) << i;
    EXPECT_EQ(sinks[i]->pixels.data,
              jpeg_test::oracle(jpeg_test::encode({.width = 20 + 20 * int(i), .height = 90})).data);
  }
}

TEST(DenseJpeg, DamagedBytesGiveAnErrorOrAnotherImage) {
  for (const bool progressive : {false, true}) {
    FileSpec spec{.width = 161, .height = 120, .progressive = progressive, .quality = 98};
    const Result<Bytes> whole = dense_from_jpeg(with_orientation(jpeg_test::encode(spec), 3));
    ASSERT_TRUE(whole);
    const auto try_all = [](const Bytes& bytes) {
      (void)jpeg_from_dense(bytes);
      Opened damaged(bytes);
      if (damaged.codec() != "dense_jpeg") return;
      const Result<ImageHeader> header = damaged.header();
      if (!header || header->width > 2000 || header->height > 2000) return;
      Collector sink(header->width, header->height, 3);
      (void)damaged.decode({0, 0, header->width, header->height}, ColorMode::kRGB, sink);
      Collector part(1, 1, 3);
      (void)damaged.decode({header->width - 1, header->height - 1, 1, 1}, ColorMode::kRGB, part);
    };
    jpeg_test::Draw draw(11);
    for (size_t size = 0; size < 700; ++size) {
      try_all(Bytes(whole->begin(), whole->begin() + ptrdiff_t(size)));
      Bytes changed = *whole;
      changed[size] ^= uint8_t(1 + draw.below(255));
      try_all(changed);
    }
    for (int part = 1; part < 64; ++part) {
      try_all(Bytes(whole->begin(), whole->begin() + ptrdiff_t(whole->size() * part / 64)));
    }
    for (size_t size = 0; size < 6; ++size) {
      EXPECT_FALSE(jpeg_from_dense(Bytes(whole->begin(), whole->begin() + ptrdiff_t(size))));
    }
    Bytes newer = *whole;
    newer[4] = 3;
    ASSERT_FALSE(jpeg_from_dense(newer));
    EXPECT_EQ(jpeg_from_dense(newer).error().code->id, "HR0327");
  }
}

}  // namespace
}  // namespace headrace
