// SPDX-License-Identifier: Apache-2.0
// The fields of a packed row, and the functions of packed_blocks.cc per SIMD level. Internal to
// kernels/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headrace/kernels/jpeg/idct.h"

// For the readers of packed quads: everything is in one function, each step for the four blocks of
// a quad (Note [Four chains] in packed_blocks_unpack_loops.h).
#define HEADRACE_INLINE inline __attribute__((always_inline))
#define HEADRACE_FOUR _Pragma("GCC unroll 4") for (int j = 0; j < 4; ++j)

namespace headrace {

// Note [Levels of a quad]
// A quad's code specifies how many sizes its coefficients have, and how the bits are fetched. One
// load from a stream gives 57 bits; a quad whose masks may need more gets a code that is read with
// longer loads. The last code stores 16-bit DC values before the blocks, for values that no image
// encoder writes.
constexpr int kFirstDeep = 9, kDense7 = 12, kDense9 = 13, kDense12 = 14, kEscape = 15;
constexpr std::array<uint8_t, 16> kLevelsOfCode = {1, 2,  3,  4,  5, 6, 7,  8,
                                                   9, 10, 11, 12, 7, 9, 12, 16};
constexpr int kEscapeDcBits = 16;

// A quad's four bytes, little-endian: 6 bits for each block's last coefficient, the width of its DC
// differences, its level code.
constexpr int kDcWidthAt = 24, kLevelCodeAt = 28;
constexpr uint32_t kLastMask = 0xFFFFFF;  // zero: all blocks have only DC

// Positions of a group's streams, in bits from its row's payload, and its last DC value.
struct GroupState {
  std::array<uint64_t, 4> at{};
  const uint8_t* payload = nullptr;
  int dc = 0;
};

// For a quad whose coefficients are stored in place of its planes, without gaps: bytes 0.. of a
// block's first set have the lower 7 bits of its nonzero coefficients and their signs, one byte
// each; its second set has the bits above, if any; its third set begins with their mask. Such quads
// have at most 9 levels, and this flag in levels().
constexpr int kCompactQuad = 128;

// Output addresses of planes, in the layout of BlockPlanes.
struct PlanePlace {
  std::array<uint64_t*, 3> set{};
  int16_t* dc = nullptr;
  uint8_t* levels = nullptr;
};

// A group being packed: its streams before they are concatenated. Four blocks of a stream take at
// most 4 * (16 + 62 + 63 + 15 * 126) bits; the writer stores 8 bytes at once.
struct GroupDraft {
  static constexpr size_t kStreamBytes = 1016;
  std::array<std::array<uint8_t, kStreamBytes + 8>, 4> stream;
  std::array<int, 4> bytes;
  int dc;  // of the first block
};

// Magnitudes and signs of 64 coefficients in zigzag order.
struct Magnitudes {
  alignas(64) std::array<uint8_t, 64> low, high;
  uint64_t signs;
};

// Packs up to 16 blocks, coefficient k of the zigzag order at position[k] of each; 4 bytes per
// quad.
using PackGroup = void (*)(const int16_t* blocks, int count, const uint8_t* position,
                           GroupDraft& group, uint8_t* quads);
PackGroup pack_group_scalar();
PackGroup pack_group_avx2();  // null where the architecture has no such level
PackGroup pack_group_slow_pext();

// Reads `skip` quads without writing, then `count` quads.
using UnpackQuads = void (*)(GroupState& group, const uint8_t* quads, int skip, int count,
                             PlanePlace place);
UnpackQuads unpack_quads_scalar();
UnpackQuads unpack_quads_bmi2();
UnpackQuads unpack_quads_compact_avx2();  // for idct_planes_avx2() on CPUs with slow pdep

// Quads of 4 blocks -> 8 rows of 32 samples each.
using IdctPlanes = void (*)(const IdctTable& table, const std::array<const uint64_t*, 3>& sets,
                            const int16_t* dc, const uint8_t* levels, int quads, uint8_t* out,
                            ptrdiff_t stride);
IdctPlanes idct_planes_avx2();
IdctPlanes idct_planes_avx512();
IdctPlanes idct_planes_neon();

}  // namespace headrace
