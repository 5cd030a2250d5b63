// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/float_batch.h"

#include <bit>
#include <cmath>
#include <limits>

#include "headrace/base/error.h"
#include "headrace/kernels/batch/batch_test_devices.h"

namespace headrace {
namespace {

const std::vector<float> kMean{0.485f, 0.456f, 0.406f, 0.1f}, kStd{0.229f, 0.224f, 0.225f, 3.0f};

// Floats of every magnitude, including subnormal and special ones.
std::vector<float> hostile_floats(TestDraws& draws, size_t count) {
  std::vector<float> values(count);
  for (float& value : values) {
    value = draws.below(2) ? std::bit_cast<float>(draws.values<uint32_t>(1)[0])
                           : draws.below(256) / 255.0f;
    if (std::isnan(value)) value = std::numeric_limits<float>::infinity();
  }
  return values;
}

class FloatBatchOn : public OnTestDevice {};

TEST_P(FloatBatchOn, NormalizesAndChangesTheLayoutInFloat32) {
  TestDraws draws(31);
  for (int round = 0; round < 40; ++round) {
    const int channels = draws.between(1, 4), count = draws.between(0, 5);
    const int height = draws.between(1, 20), width = draws.between(1, 70);
    const auto first = PictureStrides::channels_first(channels, height, width);
    const auto last = PictureStrides::channels_last(channels, height, width);
    const bool to_last = draws.below(2);
    const auto pictures = hostile_floats(draws, size_t(first.picture) * count);
    float* const out = room<float>(pictures.size());
    run_here(FloatBatch{.pictures = put(pictures),
                        .from = to_last ? first : last,
                        .batch = out,
                        .to = to_last ? last : first,
                        .count = count,
                        .channels = channels,
                        .height = height,
                        .width = width,
                        .map = FloatMap(DType::kFloat32).normalize(kMean, kStd)});
    const std::vector<float> got = get(out, pictures.size());
    for (int i = 0; i < count; ++i) {
      for (int c = 0; c < channels; ++c) {
        for (int pixel = 0; pixel < height * width; ++pixel) {
          const size_t planar = (size_t(i) * channels + c) * height * width + pixel;
          const size_t mixed = (size_t(i) * height * width + pixel) * channels + c;
          // Computed in double, then rounded once: the difference is exact there or far from a tie.
          const float x = pictures[to_last ? planar : mixed];
          const float difference = static_cast<float>(double(x) - double(kMean[c]));
          const float expected = static_cast<float>(double(difference) / double(kStd[c]));
          ASSERT_EQ(std::bit_cast<uint32_t>(got[to_last ? mixed : planar]),
                    std::bit_cast<uint32_t>(expected))
              << x;
        }
      }
    }
  }
}

TEST_P(FloatBatchOn, CastsEveryFloat16AndBack) {
  std::vector<uint16_t> halves;
  for (int bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7c00) != 0x7c00 || (bits & 0x3ff) == 0) halves.push_back(bits);  // not NaN
  }
  const int width = static_cast<int>(halves.size());
  const auto strides = PictureStrides::channels_first(1, 1, width);
  float* const floats = room<float>(width);
  uint16_t* const back = room<uint16_t>(width);
  run_here(FloatBatch{.pictures = put(halves),
                      .from = strides,
                      .batch = floats,
                      .to = strides,
                      .count = 1,
                      .height = 1,
                      .width = width,
                      .map = FloatMap(DType::kFloat16).convert(DType::kFloat32)});
  run_here(FloatBatch{.pictures = floats,
                      .from = strides,
                      .batch = back,
                      .to = strides,
                      .count = 1,
                      .height = 1,
                      .width = width,
                      .map = FloatMap(DType::kFloat32).convert(DType::kFloat16)});
  EXPECT_EQ(get(back, width), halves);
  const std::vector<float> got = get(floats, width);
  for (int i = 0; i < width; ++i) {
    const int exponent = halves[i] >> 10 & 0x1f, mantissa = halves[i] & 0x3ff;
    double value = exponent == 0x1f ? std::numeric_limits<double>::infinity()
                   : exponent       ? std::ldexp(1024 + mantissa, exponent - 25)
                                    : std::ldexp(mantissa, -24);
    ASSERT_EQ(got[i], halves[i] & 0x8000 ? -value : value) << halves[i];
  }
}

// Known ties of rounding to nearest even: between two bfloat16 the even one wins, beyond the
// midpoint the next.
TEST_P(FloatBatchOn, RoundsTiesToEven) {
  const std::vector<float> floats{1.0f,        1.00390625f,  1.01171875f,
                                  1.00390636f, -1.01171875f, 3.4e38f};
  const auto strides = PictureStrides::channels_first(1, 1, 6);
  uint16_t* const out = room<uint16_t>(6);
  run_here(FloatBatch{.pictures = put(floats),
                      .from = strides,
                      .batch = out,
                      .to = strides,
                      .count = 1,
                      .height = 1,
                      .width = 6,
                      .map = FloatMap(DType::kFloat32).convert(DType::kBFloat16)});
  EXPECT_EQ(get(out, 6), (std::vector<uint16_t>{0x3f80, 0x3f80, 0x3f82, 0x3f81, 0xbf82, 0x7f80}));
}

TEST_P(FloatBatchOn, MayWriteOverItsOwnImages) {
  const std::vector<float> floats{0.5f, 1.0f, 2.0f};
  float* const there = put(floats);
  const auto strides = PictureStrides::channels_first(1, 1, 3);
  const float mean = 0.5f, std = 0.25f;
  run_here(FloatBatch{.pictures = there,
                      .from = strides,
                      .batch = there,
                      .to = strides,
                      .count = 1,
                      .height = 1,
                      .width = 3,
                      .map = FloatMap(DType::kFloat32).normalize({&mean, 1}, {&std, 1})});
  EXPECT_EQ(get(there, 3), (std::vector<float>{0.0f, 2.0f, 6.0f}));
}

INSTANTIATE_TEST_SUITE_P(Devices, FloatBatchOn, testing::ValuesIn(test_devices()),
                         test_device_name);

template <class Function>
std::string message_of(const Function& function) {
  try {
    function();
  } catch (const Exception& exception) {
    return exception.what();
  }
  return "";
}

TEST(FloatMap, RejectsUnsupportedConversions) {
  EXPECT_EQ(message_of([] { FloatMap map(DType::kUInt8); }),
            "HR0864 unsupported conversion in a batch kernel: dtype must be float32, float16 or "
            "bfloat16 (got uint8)");
  const float none[] = {0.0f};
  EXPECT_NE(message_of([&] {
              FloatMap(DType::kFloat32).normalize(kMean, none);
            }).find("std must not be zero"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              FloatMap(DType::kFloat32).normalize({}, kStd);
            }).find("mean must have 1 to 4 values, one per channel (got 0)"),
            std::string::npos);
  FloatMap map(DType::kFloat32);
  for (int i = 0; i < FloatMap::kMaxSteps; ++i) map.normalize(kMean, kStd);
  EXPECT_NE(message_of([&] { map.normalize(kMean, kStd); }).find("a map has at most 4 transforms"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace
