// SPDX-License-Identifier: Apache-2.0
// The scalar level: one number at a time. Integers wrap around as at the other SIMD levels. Names
// are taken from the Highway library where it has one. each_level.h chooses the level. Internal to
// kernels/.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace headrace::scalar {
namespace {

using Floats = float;
using Ints = int32_t;
constexpr int kLanes = 1;

inline uint32_t word(Ints v) { return static_cast<uint32_t>(v); }
inline Ints number(uint32_t v) { return static_cast<Ints>(v); }

inline Ints LoadBytesAsInts(const uint8_t* from) { return *from; }
inline Floats ToFloats(Ints v) { return static_cast<Floats>(v); }
inline Floats Load(const float* from) { return *from; }
inline void Store(float* to, Floats v) { *to = v; }

inline Floats Set(float v) { return v; }
inline Ints Set(int v) { return v; }
inline Ints Iota() { return 0; }
inline Ints Add(Ints a, Ints b) { return number(word(a) + word(b)); }
inline Ints Sub(Ints a, Ints b) { return number(word(a) - word(b)); }
inline Ints Mul(Ints a, Ints b) { return number(word(a) * word(b)); }
inline Ints Max(Ints a, Ints b) { return std::max(a, b); }
inline Ints Min(Ints a, Ints b) { return std::min(a, b); }
inline Ints And(Ints a, Ints b) { return a & b; }
inline Ints Xor(Ints a, Ints b) { return a ^ b; }
template <int bits>
Ints ShiftRight(Ints v) {
  return number(word(v) >> bits);
}
template <int bits>
Ints ShiftRightSigned(Ints v) {
  return v >> bits;
}
inline Ints ClampToBytes(Ints v) { return std::clamp(v, 0, 255); }
template <class Value>
Value Gather(const Value* table, Ints at) {
  return table[at];
}

inline Floats Add(Floats a, Floats b) { return a + b; }
inline Floats Sub(Floats a, Floats b) { return a - b; }
inline Floats Mul(Floats a, Floats b) { return a * b; }
inline Floats Div(Floats a, Floats b) { return a / b; }
// a * b + c, rounded once
inline Floats MulAdd(Floats a, Floats b, Floats c) { return std::fma(a, b, c); }
inline Ints TruncToInts(Floats v) { return static_cast<Ints>(v); }

inline Ints Load(const int32_t* from) { return *from; }
inline void Store(int32_t* to, Ints v) { *to = v; }
// Returns the second operand if one is NaN.
inline Floats Min(Floats a, Floats b) { return a < b ? a : b; }
inline Floats Max(Floats a, Floats b) { return a > b ? a : b; }

using Mask = bool;
inline Mask Gt(Floats a, Floats b) { return a > b; }
inline Mask Ge(Floats a, Floats b) { return a >= b; }
inline Mask And(Mask a, Mask b) { return a && b; }
inline bool Eq(Ints a, Ints b) { return a == b; }
inline bool Lt(Ints a, Ints b) { return a < b; }
template <class Value>
Value IfThenElse(bool where, Value a, Value otherwise) {
  return where ? a : otherwise;
}

inline void StoreAsBytes(uint8_t* to, Ints v) { *to = static_cast<uint8_t>(v); }
// Rounded to the nearest, then clamped.
inline void StoreRounded(uint8_t* to, Floats v) {
  *to = static_cast<uint8_t>(std::clamp(std::nearbyint(v), 0.0f, 255.0f));
}

// Both halves of the unsigned products.
struct WideProduct {
  Ints high, low;
};
inline WideProduct WideMul(Ints a, Ints b) {
  const uint64_t whole = uint64_t{word(a)} * word(b);
  return {number(static_cast<uint32_t>(whole >> 32)), number(static_cast<uint32_t>(whole))};
}
inline Ints Load(const uint32_t* from) { return number(*from); }
inline void Store(uint32_t* to, Ints v) { *to = word(v); }
inline Ints BitsOf(Floats v) { return std::bit_cast<Ints>(v); }
inline Floats FromBits(Ints v) { return std::bit_cast<Floats>(v); }
inline Floats Sqrt(Floats v) { return std::sqrt(v); }

// One number of a row.
inline void LoadTransposed(const float* from, int64_t, Floats (&v)[1]) { v[0] = *from; }
inline void StoreTransposed(const Floats (&v)[1], int64_t, float* to) { *to = v[0]; }

using Words = uint8_t;  // one byte
constexpr int kByteLanes = 1;

inline Words LoadBytes(const uint8_t* from) { return *from; }
inline void StoreBytes(uint8_t* to, Words bytes) { *to = bytes; }
inline Words MinBytes(Words a, Words b) { return std::min(a, b); }
inline Words MaxBytes(Words a, Words b) { return std::max(a, b); }

using Doubles = double;
using Few = Ints;
using FewFloats = Floats;
constexpr int kDoubles = 1;

inline Doubles Set(double v) { return v; }
inline Few SetFew(int v) { return v; }
inline Few LoadBytesAsFew(const uint8_t* from) { return *from; }
inline FewFloats ToFloats(Doubles v) { return static_cast<FewFloats>(v); }
inline Doubles ToDoubles(FewFloats v) { return v; }
inline Few TruncToInts(Doubles v) { return static_cast<Few>(v); }
inline Doubles Trunc(Doubles v) { return std::trunc(v); }
inline Doubles Add(Doubles a, Doubles b) { return a + b; }
inline Doubles Sub(Doubles a, Doubles b) { return a - b; }
inline Doubles Mul(Doubles a, Doubles b) { return a * b; }
inline Doubles Div(Doubles a, Doubles b) { return a / b; }
inline void StoreLowBytes(uint8_t* to, Few v) { *to = static_cast<uint8_t>(v); }

}  // namespace
}  // namespace headrace::scalar
