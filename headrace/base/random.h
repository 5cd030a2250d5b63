// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers (Philox4x32-10, Salmon et al., SC'11).
//
// Every draw of a run is a pure function of (seed, epoch, position in the epoch, operator key), so
// it does not depend on threads, ranks or the moment of a resume.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace headrace {

std::array<uint32_t, 4> philox4x32_10(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// A good 64-bit mix of two words (SplitMix64's finalizer over a combination).
uint64_t mix64(uint64_t a, uint64_t b);
// FNV-1a, for keys made of names; never changes between versions.
uint64_t hash_name(std::string_view name);

// The stream of draws of one operator for one record. Cheap to create; for one thread.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t epoch, uint64_t position, uint64_t op_key);
  // For an upper bound on what an operator does: coin() returns true whenever its probability is
  // not 0.
  static Draws for_rehearsal(uint64_t op_key) {
    Draws draws(0, 0, 0, op_key);
    draws.heads_ = true;
    return draws;
  }

  uint32_t bits();
  double uniform();                         // [0, 1), 53 bits
  double uniform(double low, double high);  // [low, high)
  int64_t below(int64_t n);                 // 0 .. n-1, unbiased. REQUIRES: n > 0
  bool coin(double probability) { return uniform() < probability || (heads_ && probability > 0); }
  // A key for draws per pixel position (kernels/noise_rows.h).
  uint64_t key() {
    const uint64_t high = bits();
    return high << 32 | bits();
  }
  // 0 to n-1 in random order, all orders equally likely.
  template <size_t n>
  std::array<int, n> permutation() {
    std::array<int, n> order;
    for (size_t i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(below(static_cast<int64_t>(i) + 1));
      order[i] = order[at];
      order[at] = static_cast<int>(i);
    }
    return order;
  }

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
  bool heads_ = false;
};

// exp and log whose results do not depend on the C library (error below 2 ulp for |x| < 700).
double portable_exp(double x);
double portable_log(double x);  // REQUIRES: x > 0 and finite

// --- Draws from distributions; the values do not depend on the C library ---
// The number of values that they consume from the stream varies, so an operator must make its other
// draws first.

// From the standard normal distribution.
double draw_normal(Draws& draws);
// 0 to 1, from Beta(alpha, alpha). REQUIRES: alpha > 0 and finite.
double draw_beta(Draws& draws, double alpha);
// Shares that sum to 1, from a Dirichlet distribution whose parameters are all `alpha`. REQUIRES:
// alpha > 0 and finite; at least one share.
void draw_dirichlet(Draws& draws, double alpha, std::span<double> shares);

}  // namespace headrace
