// SPDX-License-Identifier: Apache-2.0
// A device's pixels equal libjpeg-turbo's full decode, to the last bit.
#include "headrace/codecs/image/jpeg/device/batch.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "headrace/codecs/image/jpeg/device/batch_test_images.h"

namespace headrace::jpeg_test {
namespace {

using Sampling = std::vector<Factors>;

const std::vector<Sampling>& samplings() {
  static const std::vector<Sampling> all = {
      {{1, 1}},                  //
      {{1, 1}, {1, 1}, {1, 1}},  // 4:4:4
      {{2, 1}, {1, 1}, {1, 1}},  // 4:2:2
      {{1, 2}, {1, 1}, {1, 1}},  // 4:4:0
      {{2, 2}, {1, 1}, {1, 1}},  // 4:2:0
      {{4, 1}, {1, 1}, {1, 1}},  // 4:1:1
      {{1, 4}, {1, 1}, {1, 1}},  //
      {{4, 2}, {1, 1}, {1, 1}},  // 4:1:0
      {{2, 4}, {1, 1}, {1, 1}},  //
      {{2, 2}, {2, 1}, {1, 2}},  //
      {{2, 2}, {2, 1}, {2, 1}},  //
      {{1, 1}, {2, 2}, {1, 1}},  // luma the smaller
      {{4, 1}, {2, 1}, {1, 1}},  //
      {{2, 1}, {1, 2}, {1, 1}},  //
  };
  return all;
}

Window whole(const FileSpec& spec) { return {0, 0, spec.width, spec.height}; }

std::vector<uint8_t> index_of(const Bytes& bytes) { return fine_index(bytes); }

void expect_oracle(const FileSpec& spec, const Window& window, Order order = Order::kForwards) {
  const Bytes bytes = encode(spec);
  const std::optional<Pixels> made = on_device(bytes, index_of(bytes), window, {}, order);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->data, oracle(bytes).slice(window).data);
}

TEST(JpegDeviceBatch, EverySizeUpTo17EqualsLibjpeg) {
  for (const Sampling& sampling : samplings()) {
    for (int height = 1; height <= 17; ++height) {
      for (int width = 1; width <= 17; ++width) {
        SCOPED_TRACE(testing::Message()
                     << sampling[0].h << 'x' << sampling[0].v << ' ' << width << 'x' << height);
        const FileSpec spec{.width = width, .height = height, .sampling = sampling};
        expect_oracle(spec, whole(spec));
      }
    }
  }
}

TEST(JpegDeviceBatch, EveryWindowEqualsTheSliceOfLibjpegs) {
  Draw draw(1);
  for (const Sampling& sampling : samplings()) {
    for (int i = 0; i < 24; ++i) {
      FileSpec spec{
          .width = 1 + draw.below(90), .height = 1 + draw.below(80), .sampling = sampling};
      spec.quality = 20 + draw.below(80);
      spec.optimize = draw.below(2) == 1;
      spec.restart_interval = draw.below(3) ? 0 : 1 + draw.below(9);
      const Window window = draw.window(spec.width, spec.height);
      SCOPED_TRACE(testing::Message() << spec.width << 'x' << spec.height << " restart "
                                      << spec.restart_interval << " window " << window.x << ','
                                      << window.y << ' ' << window.width << 'x' << window.height);
      expect_oracle(spec, window, draw.below(2) ? Order::kForwards : Order::kBackwards);
      const Bytes bytes = encode(spec);
      const std::optional<Pixels> made =
          on_device(bytes, rows_alone(bytes, index_of(bytes)), window);
      ASSERT_TRUE(made);
      EXPECT_EQ(made->data, oracle(bytes).slice(window).data);
    }
  }
}

// Data that the window does not need is neither transferred nor decoded.
TEST(JpegDeviceBatch, SegmentsOutsideTheWindowAreSkipped) {
  const FileSpec spec{.width = 640, .height = 64, .sampling = {{1, 1}, {1, 1}, {1, 1}}};
  const Bytes bytes = encode(spec);
  const Window window{320, 0, 64, 64};
  DeviceBatch all, some;
  ASSERT_TRUE(all.add(bytes, rows_alone(bytes, index_of(bytes)), window));
  ASSERT_TRUE(some.add(bytes, index_of(bytes), window));
  EXPECT_LT(some.batch().sizes().stream_words, all.batch().sizes().stream_words / 4);
  EXPECT_LT(some.batch().sizes().blocks, all.batch().sizes().blocks / 4);
}

TEST(JpegDeviceBatch, CoefficientsEqualLibjpegs) {
  Draw draw(2);
  for (const Sampling& sampling : samplings()) {
    FileSpec spec{.width = 70, .height = 53, .sampling = sampling, .quality = 97};
    spec.restart_interval = draw.below(2) * 3;
    const Bytes bytes = encode(spec);
    Decoder decoder;
    const Result<std::vector<CoefficientPlane>> expected = decoder.coefficients(bytes);
    ASSERT_TRUE(expected);
    DeviceBatch device;
    ASSERT_TRUE(device.add(bytes, index_of(bytes), whole(spec)));
    device.decode();
    ASSERT_FALSE(device.refused(0));
    const DeviceImage& image = device.batch().image(0);
    for (size_t c = 0; c < expected->size(); ++c) {
      const CoefficientPlane& from = (*expected)[c];
      const DevicePlane& plane = image.plane[c];
      for (int y = 0; y < from.blocks_high; ++y) {
        for (int x = 0; x < from.blocks_wide; ++x) {
          const int mcu = (y >> plane.v_shift) * image.mcu_columns + (x >> plane.h_shift);
          const int block = mcu * image.blocks + plane.first_block +
                            ((y & ((1 << plane.v_shift) - 1)) << plane.h_shift) +
                            (x & ((1 << plane.h_shift) - 1));
          const int16_t* const made = device.memory().coefficients + size_t(block) * 64;
          const int16_t* const wanted = &from.coefficients[size_t(y * from.blocks_wide + x) * 64];
          ASSERT_TRUE(std::equal(wanted, wanted + 64, made)) << c << ' ' << x << ',' << y;
        }
      }
    }
  }
}

TEST(JpegDeviceBatch, ColorsEqualTheCpus) {
  const FileSpec one_channel = gray(33, 19);
  const FileSpec rgb{
      .width = 33, .height = 19, .sampling = {{1, 1}, {1, 1}, {1, 1}}, .file_space = JCS_RGB};
  const FileSpec ycc{.width = 33, .height = 19};
  for (const FileSpec& spec : {one_channel, rgb, ycc}) {
    const Bytes bytes = encode(spec);
    Decoder decoder;
    for (const ColorMode color : {ColorMode::kRGB, ColorMode::kGray, ColorMode::kStored}) {
      const Window window{3, 2, 21, 15};
      const int channels = color == ColorMode::kGray                                  ? 1
                           : color == ColorMode::kStored && spec.sampling.size() == 1 ? 1
                                                                                      : 3;
      const Pixels expected = decoder.window(bytes, window, color, channels);
      const std::optional<Pixels> made = on_device(bytes, index_of(bytes), window, color);
      ASSERT_TRUE(made);
      EXPECT_EQ(made->channels, channels);
      EXPECT_EQ(made->data, expected.data);
    }
  }
}

TEST(JpegDeviceBatch, ImagesOfABatchEqualThoseDecodedAlone) {
  Draw draw(3);
  DeviceBatch batch;
  std::vector<Pixels> alone;
  for (int i = 0; i < 40; ++i) {
    FileSpec spec{.width = 1 + draw.below(100), .height = 1 + draw.below(100)};
    spec.sampling = samplings()[size_t(draw.below(int(samplings().size())))];
    spec.quality = 10 + draw.below(90);
    spec.optimize = draw.below(2) == 1;
    const Bytes bytes = encode(spec);
    const Window window = draw.window(spec.width, spec.height);
    ASSERT_TRUE(batch.add(bytes, index_of(bytes), window));
    // Rejected images leave nothing in the batch.
    ASSERT_FALSE(batch.add(bytes, {}, window));
    ASSERT_FALSE(batch.add(Bytes(bytes.begin(), bytes.begin() + 30), index_of(bytes), window));
    alone.push_back(*on_device(bytes, index_of(bytes), window));
  }
  batch.decode(Order::kBackwards);
  for (size_t i = 0; i < alone.size(); ++i) {
    ASSERT_FALSE(batch.refused(i));
    EXPECT_EQ(batch.pixels(i).data, alone[i].data) << i;
  }
}

// A flat sky, then leaves: a batch takes as long as its longest segment.
TEST(JpegDeviceBatch, SegmentsStayShortWhereDetailBegins) {
  const FileSpec spec{.width = 1600, .height = 16, .quality = 95};
  const Bytes bytes = encode(spec, [](int x, int y, int c) {
    const auto noise = uint32_t(x * 7919 + y * 104729 + c * 1299709) * 2654435761u;
    return uint8_t(x < 1000 ? 128 : noise >> 24);
  });
  DeviceBatch batch;
  ASSERT_TRUE(batch.add(bytes, fine_index(bytes, JpegRowIndex::kSpacing), whole(spec)));
  uint32_t longest = 0;
  for (const RowJob& job : batch.batch().row_jobs()) {
    longest = std::max(longest, job.end - job.begin);
  }
  EXPECT_GT(longest, uint32_t{JpegRowIndex::kSpacing});
  EXPECT_LT(longest, uint32_t{3 * JpegRowIndex::kSpacing});
}

TEST(JpegDeviceBatch, UnusualFilesAreDecodedOnTheCpu) {
  const FileSpec plain{.width = 40, .height = 40};
  FileSpec progressive = plain, arithmetic = plain, scans = plain;
  progressive.progressive = true;
  arithmetic.arithmetic = true;
  scans.one_scan_per_component = true;
  const std::vector<uint8_t> index = index_of(encode(plain));
  for (const FileSpec& spec :
       {progressive, arithmetic, scans, cmyk(true, JCS_CMYK), cmyk(true, JCS_YCCK)}) {
    EXPECT_FALSE(on_device(encode(spec), index, {0, 0, 8, 8}));
  }
  FileSpec thirds = plain;
  thirds.sampling = {{3, 1}, {1, 1}, {1, 1}};
  EXPECT_FALSE(on_device(encode(thirds), index_of(encode(thirds)), {0, 0, 8, 8}));
  EXPECT_FALSE(on_device(encode(plain), index, {0, 0, 41, 8}));
  EXPECT_TRUE(on_device(encode(plain), index, {0, 0, 40, 40}));
}

TEST(JpegDeviceBatch, FilesWithUnknownRowsAreDecodedOnTheCpu) {
  const FileSpec spec{.width = 64, .height = 96};
  const Bytes bytes = encode(spec);
  const std::vector<uint8_t> index = rows_alone(bytes, index_of(bytes), 3);  // of six
  EXPECT_TRUE(on_device(bytes, index, {0, 0, 64, 40}));
  EXPECT_FALSE(on_device(bytes, index, {0, 0, 64, 60}));
}

}  // namespace
}  // namespace headrace::jpeg_test
