// SPDX-License-Identifier: Apache-2.0
// The scalar level: one number at a time, in the words of float_lanes_avx2.h. Integers wrap around
// as the others' do. Included by the twin of each level's files before its loops. Internal to
// kernels/.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace headrace {
namespace {

using Floats = float;
using Numbers = int32_t;
constexpr int kLanes = 1;

inline uint32_t word(Numbers v) { return static_cast<uint32_t>(v); }
inline Numbers number(uint32_t v) { return static_cast<Numbers>(v); }

inline Numbers numbers_at(const uint8_t* from) { return *from; }
inline Floats floats_of(Numbers v) { return static_cast<Floats>(v); }
inline Floats load(const float* from) { return *from; }
inline void store(float* to, Floats v) { *to = v; }

inline Floats all(float v) { return v; }
inline Numbers all(int v) { return v; }
inline Numbers lane_numbers() { return 0; }
inline Numbers sum(Numbers a, Numbers b) { return number(word(a) + word(b)); }
inline Numbers difference(Numbers a, Numbers b) { return number(word(a) - word(b)); }
inline Numbers product(Numbers a, Numbers b) { return number(word(a) * word(b)); }
inline Numbers most_of(Numbers a, Numbers b) { return std::max(a, b); }
inline Numbers least_of(Numbers a, Numbers b) { return std::min(a, b); }
inline Numbers common(Numbers a, Numbers b) { return a & b; }
inline Numbers differing(Numbers a, Numbers b) { return a ^ b; }
template <int bits>
Numbers shifted_down(Numbers v) {
  return number(word(v) >> bits);
}
template <int bits>
Numbers shifted_down_signed(Numbers v) {
  return v >> bits;
}
inline Numbers to_bytes(Numbers v) { return std::clamp(v, 0, 255); }
template <class Value>
Value looked_up(const Value* table, Numbers at) {
  return table[at];
}

inline Floats sum(Floats a, Floats b) { return a + b; }
inline Floats difference(Floats a, Floats b) { return a - b; }
inline Floats product(Floats a, Floats b) { return a * b; }
inline Floats quotient(Floats a, Floats b) { return a / b; }
inline Numbers cut_off(Floats v) { return static_cast<Numbers>(v); }

inline Numbers load(const int32_t* from) { return *from; }
inline void store(int32_t* to, Numbers v) { *to = v; }
// The second where one is NaN.
inline Floats least_of(Floats a, Floats b) { return a < b ? a : b; }
inline Floats most_of(Floats a, Floats b) { return a > b ? a : b; }

using Mask = bool;
inline Mask above(Floats a, Floats b) { return a > b; }
inline Mask at_least(Floats a, Floats b) { return a >= b; }
inline Mask both(Mask a, Mask b) { return a && b; }
inline bool equal(Numbers a, Numbers b) { return a == b; }
inline bool below(Numbers a, Numbers b) { return a < b; }
template <class Value>
Value chosen(bool where, Value a, Value otherwise) {
  return where ? a : otherwise;
}

inline void store_bytes(uint8_t* to, Numbers v) { *to = static_cast<uint8_t>(v); }
// Rounded to the nearest, then clamped.
inline void store_rounded(uint8_t* to, Floats v) {
  *to = static_cast<uint8_t>(std::clamp(std::nearbyint(v), 0.0f, 255.0f));
}

}  // namespace
}  // namespace headrace
