// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/audio/samples.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace headrace::scalar {
namespace {

// Each converts a prefix of the samples in whole vectors and returns its length; they read no byte
// past the last sample. Integers are multiplied by `scale`; 24-bit samples occupy the upper bytes
// of 32.
size_t int16(const uint8_t*, size_t, size_t, float, float*) { return 0; }
size_t int24(const uint8_t*, size_t, size_t, float, float*) { return 0; }
size_t int32(const uint8_t*, size_t, size_t, float, float*) { return 0; }
size_t float32(const uint8_t*, size_t, size_t, float*) { return 0; }

}  // namespace
}  // namespace headrace::scalar

#define HEADRACE_OWN_SCALAR
#define HEADRACE_NO_NEON
#define HEADRACE_KERNEL "headrace/kernels/audio/samples_loops.h"
#include "headrace/kernels/each_level.h"

namespace headrace {
namespace {

static_assert(std::endian::native == std::endian::little);

template <class Number>
Number stored(const uint8_t* at) {
  Number value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// G.711, table 1a: some bits inverted; sign, three exponent bits, four mantissa bits.
constexpr int a_law(int code) {
  code ^= 0x55;
  const int exponent = code >> 4 & 7, mantissa = code & 15;
  const int magnitude =
      exponent == 0 ? (mantissa << 4) + 8 : ((mantissa << 4) + 0x108) << (exponent - 1);
  return code & 0x80 ? magnitude : -magnitude;
}

// G.711, table 2a: all bits inverted.
constexpr int mu_law(int code) {
  code = ~code & 0xFF;
  const int exponent = code >> 4 & 7, mantissa = code & 15;
  const int magnitude = (((mantissa << 3) + 0x84) << exponent) - 0x84;
  return code & 0x80 ? -magnitude : magnitude;
}

template <int (*value)(int)>
constexpr std::array<float, 256> table() {
  std::array<float, 256> out{};
  for (int code = 0; code < 256; ++code) out[code] = static_cast<float>(value(code)) / 32768.0f;
  return out;
}
constexpr std::array<float, 256> kALaw = table<a_law>(), kMuLaw = table<mu_law>();

// Starts at sample i. Blocks of 16, which the compiler vectorizes when the channel is contiguous.
template <size_t kBytes, class Convert>
void convert(const uint8_t* __restrict from, size_t step, size_t count, float* __restrict to,
             Convert&& one, size_t i = 0) {
  constexpr size_t kBlock = 16;
  if (step == kBytes) {
    for (; i + kBlock <= count; i += kBlock) {
      for (size_t j = 0; j < kBlock; ++j) to[i + j] = one(from + (i + j) * kBytes);
    }
  }
  for (; i < count; ++i) to[i] = one(from + i * step);
}

constexpr float kOfInt32 = 1.0f / 2147483648.0f;

void from_int32(const uint8_t* from, size_t step, size_t count, float scale, float* to) {
  const size_t done = HEADRACE_BY_LEVEL(int32)(from, step, count, scale, to);
  const auto one = [scale](const uint8_t* at) {
    return static_cast<float>(stored<int32_t>(at)) * scale;
  };
  convert<4>(from, step, count, to, one, done);
}

}  // namespace

void samples_from_uint8(const uint8_t* from, size_t step, size_t count, float* to) {
  convert<1>(from, step, count, to,
             [](const uint8_t* at) { return static_cast<float>(*at - 128) * (1.0f / 128); });
}

void samples_from_int16(const uint8_t* from, size_t step, size_t count, float* to) {
  constexpr float kScale = 1.0f / 32768;
  const size_t done = HEADRACE_BY_LEVEL(int16)(from, step, count, kScale, to);
  const auto one = [](const uint8_t* at) {
    return static_cast<float>(stored<int16_t>(at)) * kScale;
  };
  convert<2>(from, step, count, to, one, done);
}

void samples_from_int24(const uint8_t* from, size_t step, size_t count, float* to) {
  const size_t done = HEADRACE_BY_LEVEL(int24)(from, step, count, kOfInt32, to);
  const auto one = [](const uint8_t* at) {
    const uint32_t high = uint32_t{at[0]} << 8 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 24;
    return static_cast<float>(static_cast<int32_t>(high)) * kOfInt32;
  };
  convert<3>(from, step, count, to, one, done);
}

void samples_from_int32(const uint8_t* from, size_t step, size_t count, float* to) {
  from_int32(from, step, count, kOfInt32, to);
}

void samples_from_float32(const uint8_t* from, size_t step, size_t count, float* to) {
  if (step == sizeof(float)) {
    if (count > 0) std::memcpy(to, from, count * sizeof(float));
    return;
  }
  const size_t done = HEADRACE_BY_LEVEL(float32)(from, step, count, to);
  convert<4>(from, step, count, to, [](const uint8_t* at) { return stored<float>(at); }, done);
}

void samples_from_float64(const uint8_t* from, size_t step, size_t count, float* to) {
  convert<8>(from, step, count, to,
             [](const uint8_t* at) { return static_cast<float>(stored<double>(at)); });
}

void samples_from_a_law(const uint8_t* from, size_t step, size_t count, float* to) {
  convert<1>(from, step, count, to, [](const uint8_t* at) { return kALaw[*at]; });
}

void samples_from_mu_law(const uint8_t* from, size_t step, size_t count, float* to) {
  convert<1>(from, step, count, to, [](const uint8_t* at) { return kMuLaw[*at]; });
}

void samples_from_integers(const int32_t* from, int bits, size_t count, float* to) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(from);
  from_int32(bytes, sizeof(int32_t), count, std::ldexp(1.0f, 1 - bits), to);
}

size_t int16_from_samples(const float* from, size_t count, int16_t* to) {
  size_t nan = 0;
  for (size_t i = 0; i < count; ++i) {
    const float scaled = std::nearbyint(from[i] * 32768.0f);
    nan += std::isnan(scaled);
    to[i] = scaled >= 32767.0f    ? int16_t{32767}
            : scaled >= -32768.0f ? static_cast<int16_t>(scaled)
                                  : int16_t{-32768};
  }
  return nan;
}

}  // namespace headrace
