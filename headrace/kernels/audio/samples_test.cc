// SPDX-License-Identifier: Apache-2.0
// Stored samples become the same floats at each SIMD level, regardless of the bytes around them.
#include "headrace/kernels/audio/samples.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace {

using Convert = void (*)(const uint8_t*, size_t, size_t, float*);

struct Form {
  const char* name;
  Convert convert;
  size_t bytes;
};
const Form kForms[] = {{"uint8", samples_from_uint8, 1},     {"int16", samples_from_int16, 2},
                       {"int24", samples_from_int24, 3},     {"int32", samples_from_int32, 4},
                       {"float32", samples_from_float32, 4}, {"float64", samples_from_float64, 8}};

// In memory that ends with the last sample, so that sanitizers detect reads past it.
std::vector<float> converted(const Form& form, const std::vector<uint8_t>& bytes, size_t step,
                             size_t count) {
  const size_t size = count == 0 ? 0 : (count - 1) * step + form.bytes;
  const auto exact = std::make_unique<uint8_t[]>(size);
  if (size > 0) std::memcpy(exact.get(), bytes.data(), size);
  std::vector<float> out(count + 1, 7.0f);
  form.convert(exact.get(), step, count, out.data());
  EXPECT_EQ(out.back(), 7.0f);
  out.pop_back();
  return out;
}

// Compares bits, so that NaN equals NaN.
std::vector<uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<uint32_t> out(values.size());
  if (!values.empty()) std::memcpy(out.data(), values.data(), out.size() * sizeof(uint32_t));
  return out;
}

TEST(Samples, AreTheSameFloatsAtEachSimdLevel) {
  std::mt19937 random(1);
  std::vector<uint8_t> bytes(8 * 8 * 100);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  for (const Form& form : kForms) {
    for (const size_t channels : {1, 2, 3, 6}) {
      for (size_t count = 0; count < 70; ++count) {
        const size_t step = channels * form.bytes;
        set_simd_level(SimdLevel::kScalar);
        const auto expected = bits_of(converted(form, bytes, step, count));
        for (const SimdLevel level : available_levels()) {
          set_simd_level(level);
          EXPECT_EQ(bits_of(converted(form, bytes, step, count)), expected)
              << form.name << " of " << channels << " channels, " << count << ", "
              << name_of(level);
        }
      }
    }
  }
}

TEST(Samples, OfIntegersAreFractionsOfFullScale) {
  const uint8_t int24[] = {0, 0, 0x80, 0xFF, 0xFF, 0x7F, 0, 0, 0x40, 1, 0, 0};
  std::vector<float> out(4);
  for (const SimdLevel level : available_levels()) {
    set_simd_level(level);
    samples_from_int24(int24, 3, 4, out.data());
    EXPECT_EQ(out, (std::vector<float>{-1, 8388607.0f / 8388608, 0.5f, 1.0f / 8388608}));
  }
}

}  // namespace
}  // namespace headrace
