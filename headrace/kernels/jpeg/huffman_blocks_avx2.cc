// SPDX-License-Identifier: Apache-2.0
// Notes to coefficients with AVX2, eight notes at a time and across blocks. Scalar reference:
// huffman_blocks_scalar.cc.
#include "headrace/kernels/jpeg/huffman_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx2,bmi,bmi2,popcnt");

namespace headrace {
namespace {

// Results are first collected in a list, which is then scattered: long enough that the scatter
// loop's exit is rarely mispredicted, short enough that a position fits 16 bits (a block has at
// least two notes).
constexpr int kBatch = 512;

// By an 8-bit mask: the indices of its set bits, one per byte.
constexpr auto kSet = [] {
  std::array<std::array<uint8_t, 8>, 256> table{};
  for (size_t mask = 0; mask < 256; ++mask) {
    size_t count = 0;
    for (uint8_t i = 0; i < 8; ++i) {
      if (mask >> i & 1) table[mask][count++] = i;
    }
  }
  return table;
}();

// Values in the upper half, positions in the lower.
using List = std::array<uint32_t, 2 * kBatch + 8>;

// Values of eight magnitudes of `size` bits, ending at bit `end` of the stream.
__m256i values_at(__m256i stream, __m256i end, __m256i size) {
  const __m256i field = _mm256_sllv_epi32(stream, _mm256_sub_epi32(end, size));
  const __m256i rest = _mm256_sub_epi32(_mm256_set1_epi32(32), size);  // shifts by 32 give 0
  const __m256i mask = _mm256_srlv_epi32(_mm256_set1_epi32(-1), rest);
  return _mm256_sub_epi32(_mm256_srlv_epi32(field, rest),
                          _mm256_andnot_si256(_mm256_srai_epi32(field, 31), mask));
}

// Broadcasts the lower half's fourth element to the upper half; zeros below.
__m256i lower_last(__m256i v) {
  return _mm256_permute2x128_si256(_mm256_shuffle_epi32(v, 0xff), v, 0x08);
}
__m256i last_everywhere(__m256i v) { return _mm256_permutevar8x32_epi32(v, _mm256_set1_epi32(7)); }

__m256i running_sum(__m256i v) {
  v = _mm256_add_epi32(v, _mm256_slli_si256(v, 4));
  v = _mm256_add_epi32(v, _mm256_slli_si256(v, 8));
  return _mm256_add_epi32(v, lower_last(v));
}
// REQUIRES: none is negative.
__m256i running_max(__m256i v) {
  v = _mm256_max_epi32(v, _mm256_slli_si256(v, 4));
  v = _mm256_max_epi32(v, _mm256_slli_si256(v, 8));
  return _mm256_max_epi32(v, lower_last(v));
}

class Extractor {
 public:
  explicit Extractor(const uint8_t* position) {
    for (int i = 0; i < 4; ++i) {
      position_[i] = _mm256_broadcastsi128_si256(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(position + 16 * i)));
    }
  }
  // Appends eight notes to the list and returns its new length. Only `valid` of them count.
  template <bool kAll>
  int extract(const uint64_t* note, __m256i valid, List& list, int size);

  // Ends a batch. Returns the number of the current block, which becomes block 0 of the next batch.
  int next_batch() {
    const int block = _mm256_cvtsi256_si32(sums_) >> 16;
    // Sums restart: the current coefficient becomes the offset.
    const __m256i reached =
        _mm256_add_epi32(_mm256_and_si256(sums_, _mm256_set1_epi32(0xffff)), offset_);
    offset_ = _mm256_and_si256(reached, _mm256_set1_epi32(63));
    sums_ = _mm256_setzero_si256();
    return block;
  }

 private:
  // The coefficient's position in every byte.
  __m256i positions_of(__m256i k) const {
    __m256i found = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      // 16i..16i+15 become 0x70..0x7f, all others have the top bit, which gives 0.
      const __m256i index = _mm256_adds_epu8(
          _mm256_sub_epi8(k, _mm256_set1_epi8(static_cast<char>(16 * i))), _mm256_set1_epi8(0x70));
      found = _mm256_or_si256(found, _mm256_shuffle_epi8(position_[i], index));
    }
    return found;
  }
  static int append(List& list, int size, __m256i places, __m256i values, __m256i sizes) {
    const auto none = static_cast<unsigned>(
        _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(sizes, _mm256_setzero_si256()))));
    const __m256i order = _mm256_cvtepu8_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kSet[none ^ 255].data())));
    const __m256i both = _mm256_blend_epi16(places, _mm256_slli_epi32(values, 16), 0xaa);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(&list[static_cast<size_t>(size)]),
                        _mm256_permutevar8x32_epi32(both, order));
    return size + 8 - __builtin_popcount(none);
  }

  __m256i position_[4];
  // In all elements: advances since the batch began; in the upper half, the block's number in it.
  __m256i sums_ = _mm256_set1_epi32(-65536);
  // Offset of the advances that counts coefficients from the batch's block 0.
  __m256i offset_ = _mm256_setzero_si256();
};

template <bool kAll>
int Extractor::extract(const uint64_t* note, __m256i valid, List& list, int size) {
  const auto load = [note](int i) {
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(note + i))),
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(note + i + 4)), 1);
  };
  const __m256 a = _mm256_castsi256_ps(load(0)), b = _mm256_castsi256_ps(load(2));
  __m256i entry = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
  if constexpr (!kAll) entry = _mm256_and_si256(entry, valid);
  const __m256i stream = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));

  const __m256i m15 = _mm256_set1_epi32(15);
  const __m256i last_size = _mm256_and_si256(_mm256_srli_epi32(entry, 16), m15);
  const __m256i first_size = _mm256_and_si256(_mm256_srli_epi32(entry, 20), m15);
  const __m256i first = values_at(stream, _mm256_srli_epi32(entry, 28), first_size);
  const __m256i last = values_at(stream, _mm256_and_si256(entry, _mm256_set1_epi32(63)), last_size);

  const __m256i advance = _mm256_and_si256(_mm256_srli_epi32(entry, 8), _mm256_set1_epi32(127));
  const __m256i first_advance = _mm256_and_si256(_mm256_srli_epi32(entry, 24), m15);
  const __m256i dc = _mm256_cmpeq_epi32(_mm256_srli_epi32(entry, 24), _mm256_set1_epi32(0xf0));
  // A DC note, whose advance is 1, counts one block and no advance.
  sums_ = _mm256_add_epi32(
      running_sum(_mm256_add_epi32(advance, _mm256_and_si256(dc, _mm256_set1_epi32(0xffff)))),
      sums_);
  const __m256i advances = _mm256_and_si256(sums_, _mm256_set1_epi32(0xffff));
  const __m256i blocks = _mm256_srai_epi32(sums_, 16);
  sums_ = last_everywhere(sums_);
  // Since a block advances by less than 64, each DC note has a larger offset than the one before.
  const __m256i starts =
      _mm256_and_si256(dc, _mm256_sub_epi32(_mm256_slli_epi32(blocks, 6), advances));
  const __m256i offsets = _mm256_max_epi32(running_max(starts), offset_);
  offset_ = last_everywhere(offsets);

  const __m256i last_at = _mm256_add_epi32(advances, offsets);
  const __m256i first_at = _mm256_add_epi32(_mm256_sub_epi32(last_at, advance), first_advance);
  const __m256i at = _mm256_and_si256(
      _mm256_blend_epi16(first_at, _mm256_slli_epi32(last_at, 16), 0xaa), _mm256_set1_epi16(63));
  const __m256i positions = positions_of(at);
  const __m256i block = _mm256_andnot_si256(_mm256_set1_epi32(63), last_at);
  const __m256i first_place =
      _mm256_add_epi32(block, _mm256_and_si256(positions, _mm256_set1_epi32(63)));
  const __m256i last_place = _mm256_add_epi32(
      block, _mm256_and_si256(_mm256_srli_epi32(positions, 16), _mm256_set1_epi32(63)));
  size = append(list, size, first_place, first, first_size);
  return append(list, size, last_place, last, last_size);
}

void zero_blocks(int16_t* from, int count) {
  for (int i = 0; i < 4 * count; ++i) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(from + 16 * i), _mm256_setzero_si256());
  }
}

void scatter(const List& list, int size, int16_t* out) {
  for (int i = 0; i < size; ++i) {
    const uint32_t element = list[static_cast<size_t>(i)];
    out[element & 0xffff] = static_cast<int16_t>(element >> 16);
  }
}

void extract_blocks(const uint64_t* note, const uint64_t* end, const uint8_t* position,
                    int16_t* out) {
  List list;
  Extractor extractor(position);
  int started = -1;  // the block continued from the previous batch: 0, or none
  while (note < end) {
    const uint64_t* const batch_end = note + std::min<ptrdiff_t>(end - note, kBatch);
    int size = 0;
    for (; batch_end - note >= 8; note += 8) {
      size = extractor.extract<true>(note, _mm256_setzero_si256(), list, size);
    }
    if (note < batch_end) {
      const __m256i valid =
          _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(batch_end - note)),
                             _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
      size = extractor.extract<false>(note, valid, list, size);
      note = batch_end;
    }
    const int last = extractor.next_batch();
    zero_blocks(out + (started + 1) * 64, last - started);
    scatter(list, size, out);
    out += last * 64;
    started = 0;
  }
}

// Spreads four bits to every second position. No pdep: it is slow on some CPUs.
constexpr std::array<uint8_t, 16> kEvenBits = {0x00, 0x01, 0x04, 0x05, 0x10, 0x11, 0x14, 0x15,
                                               0x40, 0x41, 0x44, 0x45, 0x50, 0x51, 0x54, 0x55};

const uint64_t* skip(const uint64_t* note, const uint64_t* end, int blocks, uint64_t* dc) {
  const __m256i mask = _mm256_set1_epi64x(huffman::kDcMask),
                mark = _mm256_set1_epi64x(huffman::kDc);
  for (; end - note >= 4; note += 4) {
    const __m256i notes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(note));
    const auto starts = static_cast<unsigned>(_mm256_movemask_pd(
        _mm256_castsi256_pd(_mm256_cmpeq_epi64(_mm256_and_si256(notes, mask), mark))));
    const int count = __builtin_popcount(starts);
    if (count > blocks) break;
    // Whole notes are pairs of elements.
    const __m256i order = _mm256_cvtepu8_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kSet[kEvenBits[starts] * 3].data())));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dc), _mm256_permutevar8x32_epi32(notes, order));
    dc += count;
    blocks -= count;
  }
  return skip_blocks(note, end, blocks, dc);
}

void blocks(const HuffmanRun& run, const uint8_t* position, uint64_t* dc, int16_t* out) {
  const HuffmanWanted wanted = wanted_notes(run, dc, skip, skip_last_blocks);
  extract_blocks(wanted.begin, wanted.end, position, out);
}

constexpr HuffmanKernels kKernels{blocks};

}  // namespace

const HuffmanKernels* huffman_kernels_avx2() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const HuffmanKernels* huffman_kernels_avx2() { return nullptr; }
}  // namespace headrace

#endif
