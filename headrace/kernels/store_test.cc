// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/store.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/level_test_names.h"

namespace headrace {
namespace {

constexpr Affine kImageNetRed{1.0f / 255, 0.485f, 0.229f};

std::array<double, 256> affine_values(const Affine& affine) {
  std::array<double, 256> values;
  for (int x = 0; x < 256; ++x) {
    // volatile: each operation is rounded to float32, regardless of the compiler flags.
    volatile float scaled = static_cast<float>(x) * affine.scale;
    volatile float centered = scaled - affine.mean;
    values[x] = centered / affine.std;
  }
  return values;
}

std::array<double, 256> random_values(DType dtype) {
  std::mt19937 engine(3);
  std::array<double, 256> values;
  for (double& value : values) {
    value = dtype == DType::kUInt8 ? double(engine() % 256)
                                   : float32_from_bfloat16(uint16_t(engine() % 0x7f80));
    if (dtype == DType::kFloat16) value = float32_from_float16(uint16_t(engine() % 0x7c00));
  }
  return values;
}

// The bytes of one value.
std::string stored(const StoreTable& table, uint8_t x) {
  switch (table.dtype) {
    case DType::kFloat32:
      return std::string(reinterpret_cast<const char*>(&table.f32[x]), 4);
    case DType::kUInt8:
      return std::string(1, static_cast<char>(table.u8[x]));
    default:
      return std::string(reinterpret_cast<const char*>(&table.u16[x]), 2);
  }
}

std::vector<StoreTable> tables_of(DType dtype) {
  std::vector<StoreTable> tables{make_store_table(dtype, random_values(dtype), {})};
  if (dtype == DType::kUInt8) {
    std::array<double, 256> same;
    for (int x = 0; x < 256; ++x) same[x] = x;
    tables.push_back(make_store_table(dtype, same, {}));
    EXPECT_TRUE(tables.back().identity);
  } else {
    std::array<double, 256> values = affine_values(kImageNetRed);
    for (double& value : values) {
      const float x = static_cast<float>(value);
      if (dtype == DType::kFloat16) value = float32_from_float16(float16_from_float32(x));
      if (dtype == DType::kBFloat16) value = float32_from_bfloat16(bfloat16_from_float32(x));
    }
    tables.push_back(make_store_table(dtype, values, kImageNetRed));
    EXPECT_TRUE(tables.back().arithmetic);
  }
  return tables;
}

constexpr DType kDTypes[] = {DType::kUInt8, DType::kFloat16, DType::kBFloat16, DType::kFloat32};

class Store : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

TEST_P(Store, RowsEqualTheTableAndWritesStayInBounds) {
  std::mt19937 engine(9);
  for (DType dtype : kDTypes) {
    const size_t bytes = size_of(dtype);
    for (const StoreTable& table : tables_of(dtype)) {
      for (int count = 0; count < 300; count += count < 140 ? 1 : 29) {
        const int offset = int(engine() % 3) * 7;  // elements; 0: aligned
        std::vector<uint8_t> in(count);
        for (uint8_t& x : in) x = static_cast<uint8_t>(engine());
        Buffer out((offset + count + 70) * bytes);
        std::fill_n(out.data(), out.size(), uint8_t{0x5a});
        store_row(table, in.data(), count, out.data() + offset * bytes, count % 2);
        finish_streaming();
        std::string expected(offset * bytes, 0x5a);
        for (uint8_t x : in) expected += stored(table, x);
        expected.append(70 * bytes, 0x5a);
        ASSERT_EQ(std::memcmp(out.data(), expected.data(), expected.size()), 0)
            << name_of(dtype) << " count " << count;
      }
    }
  }
}

// Both arithmetic forms of a map, and what falls back to the table.
TEST_P(Store, RowsOfRandomMapsEqualTheTables) {
  std::mt19937 engine(13);
  std::uniform_real_distribution<float> mean(0.3f, 0.6f), std(0.1f, 0.4f);
  std::array<uint8_t, 256> in;
  for (int x = 0; x < 256; ++x) in[x] = static_cast<uint8_t>(x);
  int fused = 0, divided = 0;
  for (int round = 0; round < 300; ++round) {
    const Affine affine{1.0f / 255, mean(engine), std(engine)};
    const DType dtype = kDTypes[1 + round % 3];
    std::array<double, 256> values = affine_values(affine);
    for (double& value : values) {
      const float x = static_cast<float>(value);
      if (dtype == DType::kFloat16) value = float32_from_float16(float16_from_float32(x));
      if (dtype == DType::kBFloat16) value = float32_from_bfloat16(bfloat16_from_float32(x));
    }
    const StoreTable table = make_store_table(dtype, values, affine);
    if (dtype == DType::kFloat16) ++(table.fused ? fused : divided);
    Buffer out(256 * size_of(dtype));
    store_row(table, in.data(), 256, out.data());
    std::string expected;
    for (uint8_t x : in) expected += stored(table, x);
    ASSERT_EQ(std::memcmp(out.data(), expected.data(), expected.size()), 0) << name_of(dtype);
  }
  EXPECT_GT(fused, 0);
  EXPECT_GT(divided, 0);
}

TEST_P(Store, InterleavedRowsEqualTheTables) {
  std::mt19937 engine(11);
  for (DType dtype : kDTypes) {
    const std::vector<StoreTable> two = tables_of(dtype);
    const StoreTable* const tables[] = {&two[0], &two[1], &two[0], &two[1]};
    for (int channels = 1; channels <= 4; ++channels) {
      for (int count : {1, 2, 15, 16, 21, 22, 63, 64, 65, 223, 256, 257, 601}) {
        std::vector<Buffer> planes(4);
        const uint8_t* in[4];
        for (int c = 0; c < 4; ++c) {
          planes[c].resize(count);
          for (int i = 0; i < count; ++i) planes[c].data()[i] = static_cast<uint8_t>(engine());
          in[c] = planes[c].data();
        }
        const size_t bytes = size_t(count) * channels * size_of(dtype);
        Buffer out(bytes + 64);  // aligned, as streaming wants it
        std::fill_n(out.data(), out.size(), uint8_t{0x5a});
        store_row_interleaved(tables, in, channels, count, out.data(), count % 2);
        finish_streaming();
        std::string expected;
        for (int i = 0; i < count; ++i) {
          for (int c = 0; c < channels; ++c) expected += stored(*tables[c], in[c][i]);
        }
        expected.append(64, 0x5a);
        ASSERT_EQ(std::memcmp(out.data(), expected.data(), expected.size()), 0)
            << name_of(dtype) << ", " << channels << " channels, count " << count;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Store, testing::ValuesIn(available_levels()), level_name);

TEST(StoreTable, ArithmeticIsNotUsedIfOneValueDiffers) {
  std::array<double, 256> values = affine_values(kImageNetRed);
  EXPECT_TRUE(make_store_table(DType::kFloat32, values, kImageNetRed).arithmetic);
  values[200] = std::nextafter(static_cast<float>(values[200]), 1000.0f);
  EXPECT_FALSE(make_store_table(DType::kFloat32, values, kImageNetRed).arithmetic);
}

#if defined(__aarch64__)
using NativeHalf = __fp16;  // g++ 12 supports no other spelling in C++
#elif defined(__FLT16_MANT_DIG__)
using NativeHalf = _Float16;
#endif
#if defined(__aarch64__) || defined(__FLT16_MANT_DIG__)
// The compiler's own conversions are the reference.
TEST(Float16, RoundsAsTheCompilerDoes) {
  std::mt19937 engine(13);
  for (int i = 0; i < 2'000'000; ++i) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(engine()));
    if (std::isnan(x)) continue;
    ASSERT_EQ(float16_from_float32(x), std::bit_cast<uint16_t>(static_cast<NativeHalf>(x))) << x;
  }
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = std::bit_cast<NativeHalf>(static_cast<uint16_t>(bits));
    const float x = float32_from_float16(static_cast<uint16_t>(bits));
    if (std::isnan(x)) {
      EXPECT_TRUE((bits & 0x7fff) > 0x7c00);
      continue;
    }
    ASSERT_EQ(x, static_cast<float>(half));
    // Ties between neighbors, and values just next to them.
    for (int step : {-1, 0, 1}) {
      const uint32_t tie = std::bit_cast<uint32_t>(x) + 0x1000 + step;
      const float between = std::bit_cast<float>(tie);
      if (std::isnan(between)) continue;
      ASSERT_EQ(float16_from_float32(between),
                std::bit_cast<uint16_t>(static_cast<NativeHalf>(between)));
    }
  }
}
#endif

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(bfloat16_from_float32(1.0f), 0x3f80);
  EXPECT_EQ(bfloat16_from_float32(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // tie, even below
  EXPECT_EQ(bfloat16_from_float32(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // tie, even above
  EXPECT_EQ(bfloat16_from_float32(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  // rounds to infinity
  EXPECT_EQ(bfloat16_from_float32(std::bit_cast<float>(0x7f7fffffu)), 0x7f80);
  EXPECT_TRUE(std::isnan(float32_from_bfloat16(bfloat16_from_float32(NAN))));
}

}  // namespace
}  // namespace headrace
