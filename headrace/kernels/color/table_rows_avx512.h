// SPDX-License-Identifier: Apache-2.0
// Tables with AVX-512 (VBMI): the table is in four registers, and each instruction looks up in two.
// The scalar reference is in table_rows.cc. Internal to kernels/.

namespace headrace::avx512 {
namespace {

void look_up(const uint8_t table[256], const TableForm&, const uint8_t* in, int count,
             uint8_t* out) {
  __m512i part[4];
  for (int i = 0; i < 4; ++i) part[i] = _mm512_loadu_si512(table + 64 * i);
  for (int i = 0; i < count; i += 64) {
    const __m512i index = _mm512_loadu_si512(in + i);
    const __m512i low = _mm512_permutex2var_epi8(part[0], index, part[1]);
    const __m512i high = _mm512_permutex2var_epi8(part[2], index, part[3]);
    _mm512_storeu_si512(out + i, _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(index), high));
  }
}

}  // namespace
}  // namespace headrace::avx512
