// SPDX-License-Identifier: Apache-2.0
// Removes stuffed zeros with AVX-512 (VBMI2), 64 bytes at a time. The scalar reference is in
// unstuff.cc. Internal to kernels/.

namespace headrace::avx512 {
namespace {

Unstuffed prefix(const uint8_t* in, size_t size, uint8_t* out) {
  Unstuffed at;
  uint64_t behind_mark = 0;  // 1 if the previous byte was 0xff
  for (; at.read + 64 <= size; at.read += 64) {
    const __m512i bytes = _mm512_loadu_si512(in + at.read);
    const uint64_t marks = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(-1));
    const uint64_t zeros = _mm512_testn_epi8_mask(bytes, bytes);
    const uint64_t follows = marks << 1 | behind_mark;
    if (follows & ~zeros) break;
    _mm512_storeu_si512(out + at.written, _mm512_maskz_compress_epi8(~follows, bytes));
    at.written += static_cast<size_t>(64 - __builtin_popcountll(follows));
    behind_mark = marks >> 63;
  }
  at.read -= behind_mark;
  at.written -= behind_mark;
  return at;
}

}  // namespace
}  // namespace headrace::avx512
