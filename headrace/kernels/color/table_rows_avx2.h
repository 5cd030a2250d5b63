// SPDX-License-Identifier: Apache-2.0
// Tables with AVX2. The scalar reference is in table_rows.cc. Internal to kernels/.
//
// Note [A table of 256 by shuffles of 16]: a shuffle looks up in 16 values, and gives zero where
// the highest bit of the index is set. Part k of the table is stored as its difference (exclusive
// or) from part k - 1, and the index decreases by 16 from part to part, until it is negative. So
// the sum (exclusive or) over all parts includes those up to the index's own, and is the value in
// the table.

namespace headrace::avx2 {
namespace {

// Looks up in one half of the table. Valid bytes hold an index into the half, 0 to 127; the others
// are negative and give zero.
__m256i in_half(const __m256i part[8], __m256i place) {
  const __m256i step = _mm256_set1_epi8(16);
  // An index below this part is negative and gives zero; above 15 only the low four bits count.
  __m256i sum = _mm256_shuffle_epi8(part[0], place);
#pragma GCC unroll 8
  for (int k = 1; k < 8; ++k) {
    place = _mm256_subs_epi8(place, step);
    sum = _mm256_xor_si256(sum, _mm256_shuffle_epi8(part[k], place));
  }
  return sum;
}

// Each half duplicated, because shuffles look up within each half of a register.
__m256i sixteen(const uint8_t* values) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)));
}

template <class Compute>
void each_bytes(const uint8_t* in, int count, uint8_t* out, const Compute& compute) {
  for (int i = 0; i < count; i += 32) {
    const __m256i value = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), compute(value));
  }
}

void look_up_all(const uint8_t table[256], const uint8_t* in, int count, uint8_t* out) {
  __m256i part[16];
  for (int k = 0; k < 16; ++k) part[k] = sixteen(table + 16 * k);
  for (int k = 15; k > 0; --k) {
    if (k != 8) part[k] = _mm256_xor_si256(part[k], part[k - 1]);
  }
  const __m256i top = _mm256_set1_epi8(-128);
  each_bytes(in, count, out, [&](__m256i index) {
    const __m256i low = in_half(part, index),
                  high = in_half(part + 8, _mm256_xor_si256(index, top));
    return _mm256_xor_si256(low, high);
  });
}

void mask_and_mirror(const TableForm& form, const uint8_t* in, int count, uint8_t* out) {
  const __m256i mask = _mm256_set1_epi8(static_cast<char>(form.mask));
  if (form.threshold > 255) {
    return each_bytes(in, count, out, [&](__m256i value) { return _mm256_and_si256(value, mask); });
  }
  const __m256i threshold = _mm256_set1_epi8(static_cast<char>(form.threshold));
  each_bytes(in, count, out, [&](__m256i value) {
    const __m256i mirrored = _mm256_cmpeq_epi8(_mm256_max_epu8(value, threshold), value);
    return _mm256_xor_si256(_mm256_and_si256(value, mask), mirrored);
  });
}

// Note [Lines by their upper and lower bits]
void follow_line(const TableForm& form, const uint8_t* in, int count, uint8_t* out) {
  const __m256i rise = sixteen(form.rise.data()), fall = sixteen(form.fall.data()),
                rank = sixteen(form.rank.data()), part = sixteen(form.part.data()),
                order = sixteen(form.order.data()), four_bits = _mm256_set1_epi8(15);
  each_bytes(in, count, out, [&](__m256i value) {
    const __m256i lower = _mm256_and_si256(value, four_bits);
    const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(value, 4), four_bits);
    const __m256i carries =
        _mm256_cmpgt_epi8(_mm256_shuffle_epi8(rank, upper), _mm256_shuffle_epi8(order, lower));
    const __m256i by = _mm256_sub_epi8(_mm256_shuffle_epi8(part, lower), carries);
    const __m256i risen = _mm256_adds_epu8(_mm256_shuffle_epi8(rise, upper), by);
    return _mm256_subs_epu8(risen, _mm256_shuffle_epi8(fall, upper));
  });
}

void look_up(const uint8_t table[256], const TableForm& form, const uint8_t* in, int count,
             uint8_t* out) {
  switch (form.kind) {
    case TableForm::Kind::kMasked:
      return mask_and_mirror(form, in, count, out);
    case TableForm::Kind::kLine:
      return follow_line(form, in, count, out);
    case TableForm::Kind::kNone:
      return look_up_all(table, in, count, out);
  }
}

}  // namespace
}  // namespace headrace::avx2
