// SPDX-License-Identifier: Apache-2.0
// Stuffed zeros left out with AVX2: copies 32 bytes, and goes on after the first 0xff of them.
// Its scalar reference: unstuff.cc. Internal to kernels/.

namespace headrace::avx2 {
namespace {

Unstuffed prefix(const uint8_t* in, size_t size, uint8_t* out) {
  Unstuffed at;
  while (at.read + 33 <= size) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + at.read));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + at.written), bytes);
    const auto marks =
        static_cast<unsigned>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(-1))));
    if (marks == 0) {
      at.read += 32;
      at.written += 32;
      continue;
    }
    const unsigned before = _tzcnt_u32(marks);
    at.read += before;
    at.written += before;
    if (in[at.read + 1] != 0) break;
    at.read += 2;
    at.written += 1;
  }
  return at;
}

}  // namespace
}  // namespace headrace::avx2
