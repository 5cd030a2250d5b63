// SPDX-License-Identifier: Apache-2.0
// A value mapping gives the same bits in a batch kernel as in the renderer.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "headrace/image/pixel_map.h"
#include "headrace/kernels/batch/batch_test_devices.h"
#include "headrace/kernels/batch/float_batch.h"
#include "headrace/kernels/batch/picture_batch.h"

namespace headrace {
namespace {

const std::vector<float> kMean{0.485f, 0.456f, 0.406f}, kStd{0.229f, 0.224f, 0.225f};

MapStep convert(DType dtype, bool scale) {
  return {.dtype = dtype, .scale = scale, .mean = {}, .std = {}};
}
MapStep normalize() { return {.kind = MapStep::Kind::kNormalize, .mean = kMean, .std = kStd}; }

class PixelMapBatchOn : public OnTestDevice {};

struct TorchvisionCase {
  std::vector<MapStep> steps;
  uint64_t hash;  // FNV-1a of the bytes of the (3, 1, 256) result
};

// Made by torchvision 0.29.2: v2's to_dtype and normalize of all 256 values in three channels.
const TorchvisionCase kTorchvision[] = {
    {{convert(DType::kFloat32, true), normalize()}, 0x757ddfe7ccc8bfa3},
    {{convert(DType::kFloat16, true), normalize()}, 0xfdc6f8c21acc4431},
    {{convert(DType::kBFloat16, true), normalize()}, 0x054c302ebd2d0e25},
    {{convert(DType::kFloat32, true), normalize(), convert(DType::kFloat16, false)},
     0xcc82227d104ef0ff},
    {{convert(DType::kFloat32, true), normalize(), convert(DType::kBFloat16, true)},
     0xb8bd6272864e0b50},
};

TEST_P(PixelMapBatchOn, BytesEqualTorchvisions) {
  std::vector<uint8_t> samples;  // (1, 3, 1, 256)
  for (int i = 0; i < 3 * 256; ++i) samples.push_back(static_cast<uint8_t>(i));
  const auto strides = PictureStrides::channels_first(3, 1, 256);
  for (const TorchvisionCase& c : kTorchvision) {
    const PixelMap* map = PixelMap::identity(DType::kUInt8);
    for (const MapStep& step : c.steps) map = map->then(step);
    const StoreTable* const tables[] = {&map->table(0), &map->table(1), &map->table(2)};
    const size_t bytes = size_of(map->output());
    uint8_t* const out = room<uint8_t>(samples.size() * bytes);
    run_here(PictureBatch{
        .pictures = put(samples),
        .from = strides,
        .channels = 3,
        .height = 1,
        .width = 256,
        .count = 1,
        .batch = out,
        .to = strides,
        .to_height = 1,
        .to_width = 256,
        .map = {.bytes = static_cast<int>(bytes), .table = put(element_table(tables))}});
    uint64_t hash = 0xcbf29ce484222325;
    for (const uint8_t byte : get(out, samples.size() * bytes)) {
      hash = (hash ^ byte) * 0x100000001b3;
    }
    EXPECT_EQ(hash, c.hash) << name_of(map->output());
  }
}

TEST_P(PixelMapBatchOn, FloatsEqualTheRenderers) {
  TestDraws draws(41);
  const DType dtypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};
  const int width = 1000;
  const auto strides = PictureStrides::channels_first(3, 1, width);
  for (const DType from : dtypes) {
    for (const DType to : dtypes) {
      const PixelMap* const map =
          PixelMap::identity(from)->then(normalize())->then(convert(to, false));
      const size_t in_bytes = size_of(from), out_bytes = size_of(to);
      std::vector<uint8_t> samples(3 * width * in_bytes), expected(3 * width * out_bytes);
      for (int i = 0; i < 3 * width; ++i) {
        const float wild = std::bit_cast<float>(draws.values<uint32_t>(1)[0]);
        const float drawn = i % 2 && !std::isnan(wild) ? wild : draws.below(1000) / 999.0f;
        store_value(drawn, from, &samples[i * in_bytes]);
        const double value = map->value(load_value(from, &samples[i * in_bytes]), i / width);
        store_value(value, to, &expected[i * out_bytes]);
      }
      uint8_t* const out = room<uint8_t>(expected.size());
      run_here(FloatBatch{.pictures = put(samples),
                          .from = strides,
                          .batch = out,
                          .to = strides,
                          .count = 1,
                          .channels = 3,
                          .height = 1,
                          .width = width,
                          .map = FloatMap(from).normalize(kMean, kStd).convert(to)});
      EXPECT_EQ(get(out, expected.size()), expected) << name_of(from) << " " << name_of(to);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, PixelMapBatchOn, testing::ValuesIn(test_devices()),
                         test_device_name);

}  // namespace
}  // namespace headrace
