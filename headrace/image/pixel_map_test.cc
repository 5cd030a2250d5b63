// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/pixel_map.h"

#include <gtest/gtest.h>

#include <thread>

#include "headrace/base/error.h"
#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace pixel_map_test {

MapStep convert(DType dtype, bool scale) {
  return {.dtype = dtype, .scale = scale, .mean = {}, .std = {}};
}

MapStep normalize(int set) {
  static const std::vector<std::pair<std::vector<float>, std::vector<float>>> sets{
      {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}},
      {{0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}},
      {{0.4914f, 0.4822f, 0.4465f}, {0.2470f, 0.2435f, 0.2616f}},
      {{0.48145466f, 0.4578275f, 0.40821073f}, {0.26862954f, 0.26130258f, 0.27577711f}},
      {{123.675f, 116.28f, 103.53f}, {58.395f, 57.12f, 57.375f}},
      {{0.1307f}, {0.3081f}}};
  return {.kind = MapStep::Kind::kNormalize, .mean = sets[set].first, .std = sets[set].second};
}

const PixelMap* chain(const std::vector<MapStep>& steps) {
  const PixelMap* map = PixelMap::identity(DType::kUInt8);
  for (const MapStep& step : steps) map = map->then(step);
  return map;
}

uint64_t fnv1a(const std::vector<uint8_t>& bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

struct TorchvisionCase {
  std::vector<MapStep> steps;
  uint64_t hash;  // FNV-1a of the bytes of the (3, 1, 256) result
};

// Made by torchvision 0.29.2: v2's to_dtype and normalize of all 256 values in three channels.
const TorchvisionCase kTorchvision[] = {
    {{convert(DType::kFloat32, true)}, 0x667a82546a73e3a5},
    {{convert(DType::kFloat32, false)}, 0x79c06813477c4748},
    {{convert(DType::kFloat32, true), normalize(0)}, 0x757ddfe7ccc8bfa3},
    {{convert(DType::kFloat32, true), normalize(1)}, 0x75fe6e39fc950399},
    {{convert(DType::kFloat32, true), normalize(2)}, 0x4fa0050b20e13638},
    {{convert(DType::kFloat32, true), normalize(3)}, 0xc18ab1217729d06f},
    {{convert(DType::kFloat32, false), normalize(4)}, 0x4d185be9c17c8c5c},
    {{convert(DType::kFloat32, true), normalize(5)}, 0x249bac2854e0c036},
    {{convert(DType::kFloat16, true)}, 0x698586f9bb2f5528},
    {{convert(DType::kFloat16, false)}, 0xb99b5b94633e692b},
    {{convert(DType::kFloat16, true), normalize(0)}, 0xfdc6f8c21acc4431},
    {{convert(DType::kFloat16, true), normalize(1)}, 0x178d7007c3e5647a},
    {{convert(DType::kFloat16, true), normalize(2)}, 0x36c83c4eaa1a659f},
    {{convert(DType::kFloat16, true), normalize(3)}, 0xc29b8e1629d9676d},
    {{convert(DType::kFloat16, false), normalize(4)}, 0x2d0802d10b78621c},
    {{convert(DType::kFloat16, true), normalize(5)}, 0xa2f62b31b2560005},
    {{convert(DType::kBFloat16, true)}, 0xca9e32061d07fcd5},
    {{convert(DType::kBFloat16, false)}, 0x02a05e8ebc28a678},
    {{convert(DType::kBFloat16, true), normalize(0)}, 0x054c302ebd2d0e25},
    {{convert(DType::kBFloat16, true), normalize(1)}, 0x37250b4b1ddee8b9},
    {{convert(DType::kBFloat16, true), normalize(2)}, 0xbbef58e33e0f15fb},
    {{convert(DType::kBFloat16, true), normalize(3)}, 0x0a79723ef6287e9d},
    {{convert(DType::kBFloat16, false), normalize(4)}, 0xce6c9f7d40cf1cbb},
    {{convert(DType::kBFloat16, true), normalize(5)}, 0x99dd74964719f94c},
    {{convert(DType::kFloat32, true), normalize(0), convert(DType::kFloat16, false)},
     0xcc82227d104ef0ff},
    {{convert(DType::kFloat32, true), normalize(0), convert(DType::kBFloat16, true)},
     0xb8bd6272864e0b50},
    {{convert(DType::kFloat32, true), convert(DType::kUInt8, true)}, 0x4f33c513c2e95c25},
    {{convert(DType::kFloat16, true), convert(DType::kUInt8, true)}, 0xde72bd5a1ef52705},
    {{convert(DType::kBFloat16, true), normalize(1), convert(DType::kUInt8, false)},
     0x7d36de1b92bcc18d},
    {{convert(DType::kFloat16, true), normalize(0), convert(DType::kFloat32, false)},
     0xa7d68d92ff27733e},
    {{convert(DType::kFloat32, true), normalize(0), normalize(1)}, 0xf3a0dd9ecdb44e37},
};

std::string text_of(const std::vector<MapStep>& steps) {
  std::string text;
  for (const MapStep& step : steps) {
    text += step.kind == MapStep::Kind::kNormalize
                ? " normalize " + std::to_string(step.mean[0])
                : " " + std::string(name_of(step.dtype)) + (step.scale ? " scaled" : "");
  }
  return text;
}

TEST(PixelMap, AllValuesEqualTorchvisionsAtEverySimdLevel) {
  for (const TorchvisionCase& c : kTorchvision) {
    const PixelMap* const map = chain(c.steps);
    const size_t bytes = size_of(map->output());
    std::vector<uint8_t> all(256), by_value(3 * 256 * bytes);
    for (int x = 0; x < 256; ++x) all[x] = static_cast<uint8_t>(x);
    for (int i = 0; i < 3 * 256; ++i) {
      store_value(map->value(i % 256, i / 256), map->output(), by_value.data() + i * bytes);
    }
    EXPECT_EQ(fnv1a(by_value), c.hash) << text_of(c.steps);
    for (SimdLevel level : available_levels()) {
      set_simd_level(level);
      std::vector<uint8_t> by_row(3 * 256 * bytes);
      for (int channel = 0; channel < 3; ++channel) {
        store_row(map->table(channel), all.data(), 256, by_row.data() + channel * 256 * bytes);
      }
      EXPECT_EQ(fnv1a(by_row), c.hash) << text_of(c.steps) << " on " << name_of(level);
    }
  }
  set_simd_level(available_levels().back());
}

TEST(PixelMap, TheUsualNormalizationsVectorize) {
  for (int set : {0, 1, 2, 3, 5}) {
    const PixelMap* const map = chain({convert(DType::kFloat32, true), normalize(set)});
    for (int channel = 0; channel < 3; ++channel) EXPECT_TRUE(map->table(channel).arithmetic);
  }
}

TEST(PixelMap, EqualChainsShareOneObject) {
  const std::vector<MapStep> steps{convert(DType::kFloat32, true), normalize(0)};
  const PixelMap* const map = chain(steps);
  EXPECT_EQ(map, chain(steps));
  EXPECT_NE(map, chain({convert(DType::kFloat32, false), normalize(0)}));
  EXPECT_EQ(map->then(convert(DType::kFloat32, false)), map);  // it is float32 already
  EXPECT_TRUE(PixelMap::identity(DType::kFloat16)->is_identity());
}

TEST(PixelMap, ThreadsThatMakeTheSameChainGetTheSameObject) {
  std::vector<const PixelMap*> made(8);
  {
    std::vector<std::jthread> threads;
    for (const PixelMap*& slot : made) {
      threads.emplace_back([&slot] {
        for (int mean = 1; mean <= 20; ++mean) {
          slot = chain({convert(DType::kFloat32, true),
                        {.kind = MapStep::Kind::kNormalize, .mean = {mean / 64.0f}, .std = {3}}});
        }
      });
    }
  }
  for (const PixelMap* map : made) EXPECT_EQ(map, made[0]);
}

std::string_view code_of(DType from, const MapStep& step) {
  try {
    PixelMap::identity(from)->then(step);
  } catch (const Exception& exception) {
    return exception.error().code->id;
  }
  return "";
}

TEST(PixelMap, UnsupportedConversionsAreConfigErrors) {
  EXPECT_EQ(code_of(DType::kUInt8, convert(DType::kInt32, true)), "HR0342");
  EXPECT_EQ(code_of(DType::kFloat32, convert(DType::kFloat64, false)), "HR0342");
  EXPECT_EQ(code_of(DType::kUInt8, normalize(0)), "HR0343");
  EXPECT_EQ(code_of(DType::kFloat32, {.kind = MapStep::Kind::kNormalize, .mean = {0}, .std = {0}}),
            "HR0343");
  EXPECT_THROW(PixelMap::identity(DType::kInt64), Exception);
}

}  // namespace pixel_map_test
}  // namespace headrace
