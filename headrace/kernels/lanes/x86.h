// SPDX-License-Identifier: Apache-2.0
// Shared by avx2.h and avx512.h: HEADRACE_MM(add_ps) is the instruction _mm256_add_ps or
// _mm512_add_ps, HEADRACE_SI(and) is _mm256_and_si256 or _mm512_and_si512. Included by both, after
// their types, so it has no guard. Internal to kernels/.

namespace headrace::HEADRACE_LEVEL {
namespace {

inline Floats ToFloats(Ints v) { return HEADRACE_MM(cvtepi32_ps)(v); }
inline Floats Load(const float* from) { return HEADRACE_MM(loadu_ps)(from); }
inline void Store(float* to, Floats v) { HEADRACE_MM(storeu_ps)(to, v); }

inline Floats Set(float v) { return HEADRACE_MM(set1_ps)(v); }
inline Ints Set(int v) { return HEADRACE_MM(set1_epi32)(v); }
inline Ints Add(Ints a, Ints b) { return HEADRACE_MM(add_epi32)(a, b); }
inline Ints Sub(Ints a, Ints b) { return HEADRACE_MM(sub_epi32)(a, b); }
inline Ints Mul(Ints a, Ints b) { return HEADRACE_MM(mullo_epi32)(a, b); }
inline Ints Max(Ints a, Ints b) { return HEADRACE_MM(max_epi32)(a, b); }
inline Ints Min(Ints a, Ints b) { return HEADRACE_MM(min_epi32)(a, b); }
inline Ints And(Ints a, Ints b) { return HEADRACE_SI(and)(a, b); }
inline Ints Or(Ints a, Ints b) { return HEADRACE_SI(or)(a, b); }
inline Ints Xor(Ints a, Ints b) { return HEADRACE_SI(xor)(a, b); }
template <int bits>
Ints ShiftRight(Ints v) {
  return HEADRACE_MM(srli_epi32)(v, bits);
}
template <int bits>
Ints ShiftRightSigned(Ints v) {
  return HEADRACE_MM(srai_epi32)(v, bits);
}
template <int bits>
Ints ShiftLeft(Ints v) {
  return HEADRACE_MM(slli_epi32)(v, bits);
}
inline Ints Shl(Ints v, Ints by) { return HEADRACE_MM(sllv_epi32)(v, by); }
inline Ints ClampToBytes(Ints v) { return Max(Min(v, Set(255)), Set(0)); }

inline Floats Add(Floats a, Floats b) { return HEADRACE_MM(add_ps)(a, b); }
inline Floats Sub(Floats a, Floats b) { return HEADRACE_MM(sub_ps)(a, b); }
inline Floats Mul(Floats a, Floats b) { return HEADRACE_MM(mul_ps)(a, b); }
inline Floats Div(Floats a, Floats b) { return HEADRACE_MM(div_ps)(a, b); }
// a * b + c, rounded once
inline Floats MulAdd(Floats a, Floats b, Floats c) { return HEADRACE_MM(fmadd_ps)(a, b, c); }
// c - a * b, rounded once
inline Floats NegMulAdd(Floats a, Floats b, Floats c) { return HEADRACE_MM(fnmadd_ps)(a, b, c); }
// Returns the second operand if one is NaN.
inline Floats Min(Floats a, Floats b) { return HEADRACE_MM(min_ps)(a, b); }
inline Floats Max(Floats a, Floats b) { return HEADRACE_MM(max_ps)(a, b); }
inline Ints TruncToInts(Floats v) { return HEADRACE_MM(cvttps_epi32)(v); }

// Entries of a table of eight, at indices 0 to 7.
using Table8 = Floats;

// Both halves of the unsigned products.
struct WideProduct {
  Ints high, low;
};
inline Ints BitsOf(Floats v) { return HEADRACE_SI(castps)(v); }
inline Floats Sqrt(Floats v) { return HEADRACE_MM(sqrt_ps)(v); }

// Within each group of four, element j of vector i is exchanged with element i of vector j.
inline void transpose_quarters(Floats (&v)[4]) {
  const Floats low01 = HEADRACE_MM(unpacklo_ps)(v[0], v[1]),
               high01 = HEADRACE_MM(unpackhi_ps)(v[0], v[1]);
  const Floats low23 = HEADRACE_MM(unpacklo_ps)(v[2], v[3]),
               high23 = HEADRACE_MM(unpackhi_ps)(v[2], v[3]);
  v[0] = HEADRACE_MM(shuffle_ps)(low01, low23, 0x44);
  v[1] = HEADRACE_MM(shuffle_ps)(low01, low23, 0xEE);
  v[2] = HEADRACE_MM(shuffle_ps)(high01, high23, 0x44);
  v[3] = HEADRACE_MM(shuffle_ps)(high01, high23, 0xEE);
}

inline Words LowWords(Words bytes) {
  return HEADRACE_MM(unpacklo_epi8)(bytes, HEADRACE_SI(setzero)());
}
inline Words HighWords(Words bytes) {
  return HEADRACE_MM(unpackhi_epi8)(bytes, HEADRACE_SI(setzero)());
}
// In each group of 16 bytes:
inline Words InterleaveLowBytes(Words a, Words b) { return HEADRACE_MM(unpacklo_epi8)(a, b); }
inline Words InterleaveHighBytes(Words a, Words b) { return HEADRACE_MM(unpackhi_epi8)(a, b); }
inline Words MinBytes(Words a, Words b) { return HEADRACE_MM(min_epu8)(a, b); }
inline Words MaxBytes(Words a, Words b) { return HEADRACE_MM(max_epu8)(a, b); }

inline Words AddWords(Words a, Words b) { return HEADRACE_MM(add_epi16)(a, b); }
inline Words SubWords(Words a, Words b) { return HEADRACE_MM(sub_epi16)(a, b); }
template <int bits>
Words ShiftLeftWords(Words v) {
  return HEADRACE_MM(slli_epi16)(v, bits);
}
template <int bits>
Words ShiftRightWords(Words v) {
  return HEADRACE_MM(srli_epi16)(v, bits);
}
// The upper 16 bits of unsigned products.
inline Words MulHighWords(Words a, Words b) { return HEADRACE_MM(mulhi_epu16)(a, b); }
inline Words MulHighSignedWords(Words a, Words b) { return HEADRACE_MM(mulhi_epi16)(a, b); }
inline Words MulRoundedWords(Words a, Words b) { return HEADRACE_MM(mulhrs_epi16)(a, b); }
template <int bits>
Words ShiftRightSignedWords(Words v) {
  return HEADRACE_MM(srai_epi16)(v, bits);
}
inline Words SetWords(int v) { return HEADRACE_MM(set1_epi16)(static_cast<int16_t>(v)); }

// Bytes and words at even and at odd positions.
inline Words EvenBytes(Words bytes) { return HEADRACE_SI(and)(bytes, SetWords(0xff)); }
inline Words OddBytes(Words bytes) { return HEADRACE_MM(srli_epi16)(bytes, 8); }
inline Words InterleaveBytes(Words even, Words odd) {
  return HEADRACE_SI(or)(even, HEADRACE_MM(slli_epi16)(odd, 8));
}
// Sums of two neighbors, each multiplied by its one-byte weight (all_bytes).
inline Words MulPairwiseAddBytes(Words bytes, Words weights) {
  return HEADRACE_MM(maddubs_epi16)(bytes, weights);
}
inline Words SetBytePairs(int even, int odd) { return SetWords(even | odd << 8); }

// The words of a and b, interleaved.
inline Words InterleaveLowWords(Words a, Words b) { return HEADRACE_MM(unpacklo_epi16)(a, b); }
inline Words InterleaveHighWords(Words a, Words b) { return HEADRACE_MM(unpackhi_epi16)(a, b); }
// Dot products of pairs of words, as 32-bit sums.
inline Words WidenMulPairwiseAdd(Words a, Words b) { return HEADRACE_MM(madd_epi16)(a, b); }
inline Words SetWordPairs(int first, int second) {
  return HEADRACE_MM(set1_epi32)(first | static_cast<int>(static_cast<uint32_t>(second) << 16));
}
inline Words SetInts(int v) { return HEADRACE_MM(set1_epi32)(v); }
inline Words AddInts(Words a, Words b) { return HEADRACE_MM(add_epi32)(a, b); }
// Arithmetic right shift of 32-bit numbers.
template <int bits>
Words ShiftRightInts(Words v) {
  return HEADRACE_MM(srai_epi32)(v, bits);
}
// Packs 32-bit numbers to words, saturated.
inline Words DemoteToWords(Words low, Words high) { return HEADRACE_MM(packs_epi32)(low, high); }

inline Ints TableLookupBytes(Ints pixels, Ints picker) {
  return HEADRACE_MM(shuffle_epi8)(pixels, picker);
}
inline Ints InterleaveLowInts(Ints a, Ints b) { return HEADRACE_MM(unpacklo_epi32)(a, b); }
inline Ints InterleaveHighInts(Ints a, Ints b) { return HEADRACE_MM(unpackhi_epi32)(a, b); }
inline Ints InterleaveLowPairs(Ints a, Ints b) { return HEADRACE_MM(unpacklo_epi64)(a, b); }
inline Ints InterleaveHighPairs(Ints a, Ints b) { return HEADRACE_MM(unpackhi_epi64)(a, b); }
inline Ints NearestInt(Floats v) { return HEADRACE_MM(cvtps_epi32)(v); }
inline Ints LowBytes(Ints v) { return HEADRACE_SI(and)(v, Set(255)); }

inline Doubles Set(double v) { return HEADRACE_MM(set1_pd)(v); }
inline Doubles Load(const double* from) { return HEADRACE_MM(loadu_pd)(from); }
inline void Store(double* to, Doubles v) { HEADRACE_MM(storeu_pd)(to, v); }
inline Doubles Add(Doubles a, Doubles b) { return HEADRACE_MM(add_pd)(a, b); }
inline Doubles Sub(Doubles a, Doubles b) { return HEADRACE_MM(sub_pd)(a, b); }
inline Doubles Mul(Doubles a, Doubles b) { return HEADRACE_MM(mul_pd)(a, b); }
inline Doubles Div(Doubles a, Doubles b) { return HEADRACE_MM(div_pd)(a, b); }
inline Few TruncToInts(Doubles v) { return HEADRACE_MM(cvttpd_epi32)(v); }
inline Doubles ToDoubles(Few v) { return HEADRACE_MM(cvtepi32_pd)(v); }

inline FewFloats ToFloats(Doubles v) { return HEADRACE_MM(cvtpd_ps)(v); }
inline Doubles ToDoubles(FewFloats v) { return HEADRACE_MM(cvtps_pd)(v); }

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL
