// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/random.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace headrace {
namespace {

// ln 2 in two parts, so that k * kLn2High is exact for |k| < 2^20 (Cody & Waite).
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;

}  // namespace

std::array<uint32_t, 4> philox4x32_10(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p0)};
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return c;
}

uint64_t mix64(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9E3779B97F4A7C15 * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

uint64_t hash_name(std::string_view name) {
  uint64_t h = 0xCBF29CE484222325;
  for (unsigned char byte : name) h = (h ^ byte) * 0x100000001B3;
  return h;
}

Draws::Draws(uint64_t seed, uint64_t epoch, uint64_t position, uint64_t op_key) {
  const uint64_t key = mix64(seed, op_key);
  key_ = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
  counter_ = {0, static_cast<uint32_t>(epoch), static_cast<uint32_t>(position),
              static_cast<uint32_t>(position >> 32)};
}

uint32_t Draws::bits() {
  if (used_ == 4) {
    block_ = philox4x32_10(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[used_++];
}

double Draws::uniform() {
  const uint64_t high = bits() >> 5, low = bits() >> 6;
  return static_cast<double>((high << 26) | low) * 0x1p-53;
}

double Draws::uniform(double low, double high) { return low + (high - low) * uniform(); }

int64_t Draws::below(int64_t n) {
  // Lemire's multiply-and-reject, on 64 bits.
  const uint64_t bound = static_cast<uint64_t>(n);
  const uint64_t threshold = -bound % bound;
  while (true) {
    const uint64_t high = bits();
    const uint64_t x = (high << 32) | bits();
    const unsigned __int128 product = static_cast<unsigned __int128>(x) * bound;
    if (static_cast<uint64_t>(product) >= threshold) return static_cast<int64_t>(product >> 64);
  }
}

double portable_exp(double x) {
  const double k = std::floor(x / 0.69314718055994530942 + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| <= ln 2 / 2
  double term = 1.0, sum = 1.0;
  for (int i = 1; i <= 14; ++i) {  // r^15 / 15! < 2^-63
    term = term * r / i;
    sum += term;
  }
  return std::ldexp(sum, static_cast<int>(k));
}

double portable_log(double x) {
  int exponent;
  double m = std::frexp(x, &exponent);  // [0.5, 1)
  if (m < 0.70710678118654752440) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1), s2 = s * s;  // log m = 2 atanh s, |s| < 0.172
  double sum = 0;
  for (int i = 25; i >= 1; i -= 2) sum = sum * s2 + 1.0 / i;
  return exponent * kLn2High + (2 * s * sum + exponent * kLn2Low);
}

// Marsaglia's polar method.
double draw_normal(Draws& draws) {
  while (true) {
    const double x = draws.uniform(-1, 1), y = draws.uniform(-1, 1);
    const double square = x * x + y * y;
    if (square > 0 && square < 1) return x * std::sqrt(-2 * portable_log(square) / square);
  }
}

namespace {

// (0, 1], which has a logarithm.
double above_zero(Draws& draws) { return 1 - draws.uniform(); }

// The logarithm of a draw from Gamma(alpha, 1): small alphas give draws below the range of a
// double. Marsaglia and Tsang, A Simple Method for Generating Gamma Variables, 2000.
double draw_log_gamma(Draws& draws, double alpha) {
  if (alpha < 1) {
    const double boost = portable_log(above_zero(draws)) / alpha;
    return draw_log_gamma(draws, alpha + 1) + boost;
  }
  const double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = draw_normal(draws), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root, log_v = 3 * portable_log(root);
    if (portable_log(above_zero(draws)) < 0.5 * x * x + d - d * v + d * log_v) {
      return portable_log(d) + log_v;
    }
  }
}

}  // namespace

void draw_dirichlet(Draws& draws, double alpha, std::span<double> shares) {
  for (double& share : shares) share = draw_log_gamma(draws, alpha);
  const double most = *std::ranges::max_element(shares);
  double sum = 0;
  for (double& share : shares) {
    share = share - most < -700 ? 0 : portable_exp(share - most);
    sum += share;
  }
  for (double& share : shares) share /= sum;
}

double draw_beta(Draws& draws, double alpha) {
  std::array<double, 2> shares;
  draw_dirichlet(draws, alpha, shares);
  return shares[0];
}

}  // namespace headrace
