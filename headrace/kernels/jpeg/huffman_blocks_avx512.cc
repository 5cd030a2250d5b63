// SPDX-License-Identifier: Apache-2.0
// Notes (table entries with their bits of the stream, huffman_entry.h) to coefficients with AVX-512
// (VBMI2, VNNI), 64 notes at a time and across blocks. Scalar reference: huffman_blocks_scalar.cc.
#include "headrace/kernels/jpeg/huffman_levels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "headrace/kernels/target.h"

HEADRACE_TARGET("avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx512vnni,bmi,bmi2,popcnt");

namespace headrace {
namespace {

// Results are first collected in a list, which is then scattered: long enough that the scatter
// loop's exit is rarely mispredicted, short enough that a block's number in it fits 8 bits (a block
// has at least two notes).
constexpr int kBatch = 448;

template <class T, size_t kCount, class Function>
constexpr std::array<T, kCount> table_of(const Function& at) {
  std::array<T, kCount> table{};
  for (size_t i = 0; i < kCount; ++i) table[i] = static_cast<T>(at(static_cast<int>(i)));
  return table;
}

// The parts of 16 notes in two vectors: their entries, and their bits of the stream.
alignas(64) constexpr auto kEntries = table_of<int32_t, 16>([](int i) { return 2 * i; });
alignas(64) constexpr auto kStreams = table_of<int32_t, 16>([](int i) { return 2 * i + 1; });
// From two vectors of entries: byte 1 of each (advances), then byte 3 (the first symbol's advance).
alignas(64) constexpr auto kAdvances = table_of<uint8_t, 64>([](int i) {
  return i % 32 * 4 + (i < 32 ? 1 : 3);
});
// By the size of a magnitude, ignoring bit 4: its mask, and its highest bit.
alignas(64) constexpr auto kMagnitude = table_of<uint16_t, 32>([](int i) {
  return (1 << i % 16) - 1;
});
alignas(64) constexpr auto kTopBit = table_of<uint16_t, 32>([](int i) {
  return (1 << i % 16) >> 1;
});
// Prefix sums over the groups of eight bytes: which of the groups 0-3, 4-7 are included.
alignas(64) constexpr auto kLowQuads = table_of<uint8_t, 64>([](int i) {
  return i / 8 > i % 4 ? 1 : 0;
});
alignas(64) constexpr auto kHighQuads = table_of<uint8_t, 64>([](int i) {
  return i / 8 > i % 4 + 4 ? 1 : 0;
});
alignas(64) constexpr auto kLowLast = table_of<uint8_t, 64>([](int i) { return i % 4 * 8 + 7; });
alignas(64) constexpr auto kHighLast = table_of<uint8_t, 64>([](int i) { return i % 4 * 8 + 39; });
alignas(64) constexpr auto kFirstOfQuad = table_of<uint8_t, 64>([](int i) {
  return i % 16 / 8 * 8;
});
// 16 notes' pairs of positions, 16 bits each: the low bytes from two vectors, the high ones from
// one.
struct Pairs {
  alignas(64) std::array<uint8_t, 64> low, high;
};
constexpr std::array<Pairs, 4> kPairs = [] {
  std::array<Pairs, 4> pairs{};
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < 64; ++i) {
      pairs[j].low[i] = static_cast<uint8_t>(i % 4 / 2 * 64 + 16 * j + i / 4);
      pairs[j].high[i] = static_cast<uint8_t>(16 * j + i / 4);
    }
  }
  return pairs;
}();

template <class Table>
__m512i load(const Table& table) {
  return _mm512_load_si512(table.data());
}

// Inclusive prefix sums of bytes, wrapping, plus `before` (the low byte of each 32 bits). REQUIRES:
// any eight bytes of a group sum to less than 256.
__m512i running_sum(__m512i bytes, __m512i before) {
  const __m512i in_quad = _mm512_mullo_epi64(bytes, _mm512_set1_epi64(0x0101010101010101));
  __m512i quads = _mm512_dpbusd_epi32(before, _mm512_permutexvar_epi8(load(kLowLast), in_quad),
                                      load(kLowQuads));
  quads = _mm512_dpbusd_epi32(quads, _mm512_permutexvar_epi8(load(kHighLast), in_quad),
                              load(kHighQuads));
  return _mm512_add_epi8(in_quad, _mm512_shuffle_epi8(quads, load(kFirstOfQuad)));
}

// The list of one batch: 16-bit positions and values.
struct List {
  alignas(64) std::array<uint16_t, 2 * kBatch + 64> place, value;
};

struct Extractor {
  explicit Extractor(const uint8_t* positions)
      : position(_mm512_loadu_si512(positions)),
        k(_mm512_setzero_si512()),
        block(_mm512_set1_epi8(-1)) {}

  // Appends up to 64 notes to the list and returns its new length.
  template <bool kAll>
  int extract(const uint64_t* note, int count, List& list, int size);

  __m512i position;
  __m512i k;      // the current coefficient, in all bytes
  __m512i block;  // its block's number in the batch, in all bytes
};

template <bool kAll>
int Extractor::extract(const uint64_t* note, int count, List& list, int size) {
  const uint64_t valid =
      kAll ? ~uint64_t{0} : _bzhi_u64(~uint64_t{0}, static_cast<unsigned>(count));
  const auto notes_at = [&](int i) {
    if (kAll) return _mm512_loadu_si512(note + i);
    return _mm512_maskz_loadu_epi64(static_cast<__mmask8>(valid >> i), note + i);
  };
  __m512i entry[4], values[4], sizes[4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512i a = notes_at(16 * j), b = notes_at(16 * j + 8);
    entry[j] = _mm512_permutex2var_epi32(a, load(kEntries), b);
    const __m512i stream = _mm512_permutex2var_epi32(a, load(kStreams), b);
    // The first symbol's value in the low 16 bits, the other's in the high ones.
    const __m512i fields = _mm512_mask_blend_epi16(
        0xaaaaaaaa, _mm512_rolv_epi32(stream, _mm512_srli_epi32(entry[j], 28)),
        _mm512_rolv_epi32(_mm512_rol_epi32(stream, 16), entry[j]));
    sizes[j] = _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(entry[j], 20), entry[j]);
    const __m512i mask = _mm512_permutexvar_epi16(sizes[j], load(kMagnitude));
    const __m512i value = _mm512_and_si512(fields, mask);
    const __mmask32 negative =
        _mm512_testn_epi16_mask(value, _mm512_permutexvar_epi16(sizes[j], load(kTopBit)));
    values[j] = _mm512_mask_sub_epi16(value, negative, value, mask);
  }

  const __m512i low = _mm512_permutex2var_epi8(entry[0], load(kAdvances), entry[1]);
  const __m512i high = _mm512_permutex2var_epi8(entry[2], load(kAdvances), entry[3]);
  const __m512i advance =
      _mm512_and_si512(_mm512_shuffle_i64x2(low, high, 0x44), _mm512_set1_epi8(127));
  const __m512i firsts = _mm512_shuffle_i64x2(low, high, 0xee);
  const __mmask64 dc = _mm512_cmpeq_epi8_mask(firsts, _mm512_set1_epi8(static_cast<char>(0xf0)));
  const __m512i first_advance = _mm512_and_si512(firsts, _mm512_set1_epi8(15));

  // Prefix sums of advances continue across blocks. Subtracting the sum at the block's DC note (0
  // if that note came in an earlier vector) gives coefficients.
  const __m512i sums = running_sum(advance, k);
  const __m512i blocks_less_1 = running_sum(_mm512_maskz_set1_epi8(dc, 1), _mm512_set1_epi32(255));
  const __m512i bases = _mm512_permutex2var_epi8(_mm512_maskz_compress_epi8(dc, sums),
                                                 blocks_less_1, _mm512_setzero_si512());
  const __m512i last_k = _mm512_sub_epi8(sums, bases);
  const __m512i first_k = _mm512_add_epi8(_mm512_sub_epi8(last_k, advance), first_advance);
  const __m512i blocks =
      _mm512_add_epi8(_mm512_add_epi8(blocks_less_1, _mm512_set1_epi8(1)), block);
  k = _mm512_permutexvar_epi8(_mm512_set1_epi8(63), last_k);
  block = _mm512_permutexvar_epi8(_mm512_set1_epi8(63), blocks);

  // Positions: block * 64 + coefficient; the two symbols differ only in the low byte.
  const __m512i block_low = _mm512_slli_epi16(blocks, 6);
  const __m512i block_high = _mm512_and_si512(_mm512_srli_epi16(blocks, 2), _mm512_set1_epi8(0x3f));
  const auto low_place = [&](__m512i coefficient) {
    constexpr int kAOrBAndC = 0xf8;
    return _mm512_ternarylogic_epi64(_mm512_permutexvar_epi8(coefficient, position), block_low,
                                     _mm512_set1_epi8(static_cast<char>(0xc0)), kAOrBAndC);
  };
  const __m512i first_place = low_place(first_k), last_place = low_place(last_k);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512i lows = _mm512_permutex2var_epi8(first_place, load(kPairs[j].low), last_place);
    const __m512i places =
        _mm512_mask_permutexvar_epi8(lows, 0xaaaaaaaaaaaaaaaa, load(kPairs[j].high), block_high);
    const __mmask32 wanted = _mm512_test_epi16_mask(sizes[j], _mm512_set1_epi16(15));
    _mm512_storeu_si512(&list.place[size], _mm512_maskz_compress_epi16(wanted, places));
    _mm512_storeu_si512(&list.value[size], _mm512_maskz_compress_epi16(wanted, values[j]));
    size += __builtin_popcount(wanted);
  }
  return size;
}

void zero_blocks(int16_t* from, int count) {
  for (int i = 0; i < 2 * count; ++i) _mm512_store_si512(from + 32 * i, _mm512_setzero_si512());
}

// Extracts values from vectors in registers: the load and store ports are the bottleneck, not
// arithmetic.
void scatter(const List& list, int size, int16_t* out) {
  int i = 0;
  for (; i + 8 <= size; i += 8) {
    const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&list.value[i]));
    const uint16_t* const place = &list.place[i];
    out[place[0]] = static_cast<int16_t>(_mm_extract_epi16(values, 0));
    out[place[1]] = static_cast<int16_t>(_mm_extract_epi16(values, 1));
    out[place[2]] = static_cast<int16_t>(_mm_extract_epi16(values, 2));
    out[place[3]] = static_cast<int16_t>(_mm_extract_epi16(values, 3));
    out[place[4]] = static_cast<int16_t>(_mm_extract_epi16(values, 4));
    out[place[5]] = static_cast<int16_t>(_mm_extract_epi16(values, 5));
    out[place[6]] = static_cast<int16_t>(_mm_extract_epi16(values, 6));
    out[place[7]] = static_cast<int16_t>(_mm_extract_epi16(values, 7));
  }
  for (; i < size; ++i) out[list.place[i]] = static_cast<int16_t>(list.value[i]);
}

// Writes the blocks of these notes to `out`, one after another.
void extract_blocks(const uint64_t* note, const uint64_t* end, const uint8_t* position,
                    int16_t* out) {
  List list;
  Extractor extractor(position);
  int started = -1;  // the block continued from the previous batch: 0, or none
  while (note < end) {
    const uint64_t* const batch_end = note + std::min<ptrdiff_t>(end - note, kBatch);
    int size = 0;
    for (; batch_end - note >= 64; note += 64) size = extractor.extract<true>(note, 64, list, size);
    if (note < batch_end) {
      size = extractor.extract<false>(note, static_cast<int>(batch_end - note), list, size);
      note = batch_end;
    }
    const int last = _mm_cvtsi128_si32(_mm512_castsi512_si128(extractor.block)) & 255;
    zero_blocks(out + (started + 1) * 64, last - started);
    scatter(list, size, out);
    out += last * 64;
    extractor.block = _mm512_setzero_si512();
    started = 0;
  }
}

// Mask of the notes, of eight, that are DC differences.
__mmask8 dc_of(__m512i notes) {
  return _mm512_cmpeq_epi64_mask(_mm512_and_si512(notes, _mm512_set1_epi64(huffman::kDcMask)),
                                 _mm512_set1_epi64(huffman::kDc));
}

// Copies the DC notes of `count` blocks, and returns where the next block begins, or the end.
const uint64_t* skip(const uint64_t* note, const uint64_t* end, int blocks, uint64_t* dc) {
  for (; note < end && blocks >= 0; note += 8) {
    const unsigned valid =
        _bzhi_u32(255, static_cast<unsigned>(std::min<ptrdiff_t>(end - note, 8)));
    const __m512i notes = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(valid), note);
    const unsigned mask = dc_of(notes);
    const int count = __builtin_popcount(mask);
    _mm512_storeu_si512(dc, _mm512_maskz_compress_epi64(static_cast<__mmask8>(mask), notes));
    if (count > blocks) return note + _tzcnt_u32(_pdep_u32(1u << blocks, mask));
    blocks -= count;
    dc += count;
  }
  return end;
}

// The same from the end, for the last blocks. Returns where the first of them begins.
const uint64_t* skip_last(const uint64_t* begin, const uint64_t* end, int blocks,
                          uint64_t* dc_end) {
  while (blocks > 0 && end > begin) {
    const int some = static_cast<int>(std::min<ptrdiff_t>(end - begin, 8));
    end -= some;
    const __m512i notes = _mm512_maskz_loadu_epi64(
        static_cast<__mmask8>(_bzhi_u32(255, static_cast<unsigned>(some))), end);
    unsigned mask = dc_of(notes);
    for (; __builtin_popcount(mask) > blocks;) mask &= mask - 1;
    const int count = __builtin_popcount(mask);
    dc_end -= count;
    _mm512_mask_storeu_epi64(dc_end,
                             static_cast<__mmask8>(_bzhi_u32(255, static_cast<unsigned>(count))),
                             _mm512_maskz_compress_epi64(static_cast<__mmask8>(mask), notes));
    blocks -= count;
    if (blocks == 0) return end + _tzcnt_u32(mask);
  }
  return end;
}

void blocks(const HuffmanRun& run, const uint8_t* position, uint64_t* dc, int16_t* out) {
  const HuffmanWanted wanted = wanted_notes(run, dc, skip, skip_last);
  extract_blocks(wanted.begin, wanted.end, position, out);
}

constexpr HuffmanKernels kKernels{blocks};

}  // namespace

const HuffmanKernels* huffman_kernels_avx512() { return &kKernels; }

}  // namespace headrace

HEADRACE_TARGET_END;

#else

namespace headrace {
const HuffmanKernels* huffman_kernels_avx512() { return nullptr; }
}  // namespace headrace

#endif
