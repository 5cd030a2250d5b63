// SPDX-License-Identifier: Apache-2.0
// A row of blocks of quantized coefficients as bit planes: packed JPEG (docs/spec/packed-jpeg.md).
//
// Blocks are packed in quads of 4, quads in groups of 16 blocks; a group has four bit streams that
// are read in parallel, and does not depend on earlier groups. Reading gives planes (bit k of a
// plane belongs to coefficient k of the zigzag order), which idct_planes() turns into samples
// without coefficients in between. For any bytes, nothing is read outside [row, its end +
// kPackedReach): offsets are checked once per group, and the fields of a block are bounded by their
// bit widths. Any thread may call these functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/kernels/jpeg/idct.h"

namespace headrace {

constexpr int kQuadBlocks = 4, kGroupBlocks = 16;
constexpr size_t kQuadBytes = 4, kGroupBytes = 6;  // of a row's tables
constexpr int kMaxStreamShift = 2;
// Four blocks of a stream take at most 4 * 2046 bits; lookahead takes 12 bytes more.
constexpr size_t kPackedReach = 1088;

// Appends `count` blocks as a row: 64 coefficients per block, of any value, coefficient k of the
// zigzag order at position[k].
void pack_row(const int16_t* blocks, int count, const std::array<uint8_t, 64>& position,
              std::vector<uint8_t>& out);
// Bytes of a row before its payload.
size_t packed_row_tables(int count);

// A row whose tables are inside its bytes. REQUIRES for reading: kPackedReach readable bytes after
// it.
struct PackedRow {
  const uint8_t* quads = nullptr;
  const uint8_t* groups = nullptr;
  const uint8_t* payload = nullptr;
  size_t payload_bytes = 0;
  int count = 0;  // of blocks
  int shift = 0;  // stream lengths are multiples of 1 << shift bytes
};
// False if the bytes cannot be a row of `count` blocks. Reads no byte past them.
bool open_packed_row(std::span<const uint8_t> bytes, int count, PackedRow& row);

// Bit planes of magnitudes and signs of adjacent blocks; only the planes covered by a quad's levels
// are meaningful.
class BlockPlanes {
 public:
  static constexpr int kBits = 7;    // magnitude bits per set of 8 planes
  static constexpr int kDepths = 3;  // sets of planes for 16 bits

  // Makes room for `count` blocks, rounded up to whole quads.
  void resize(int count);
  static size_t bytes_of(int count);
  // 8 planes of a block: bits kBits * depth and up of the magnitudes, then the signs.
  uint64_t* planes(int depth, int block) {
    return reinterpret_cast<uint64_t*>(sets_[depth].data()) + 8 * ptrdiff_t{block};
  }
  const uint64_t* planes(int depth, int block) const {
    return reinterpret_cast<const uint64_t*>(sets_[depth].data()) + 8 * ptrdiff_t{block};
  }
  int16_t* dc() { return reinterpret_cast<int16_t*>(dc_.data()); }
  const int16_t* dc() const { return reinterpret_cast<const int16_t*>(dc_.data()); }
  // Magnitude bits of a quad: 0 if it has only DC values. Planes beyond these are meaningless.
  uint8_t* levels() { return levels_.data(); }
  const uint8_t* levels() const { return levels_.data(); }
  size_t held_bytes() const;
  void free() { *this = BlockPlanes(); }

 private:
  std::array<Buffer, kDepths> sets_;
  Buffer dc_, levels_;
};

// Reads the blocks [first, end) into positions 0.. of `planes`, in whole quads. False if the bytes
// are damaged; the contents of `planes` are then meaningless. REQUIRES: first is a multiple of 4, 0
// <= first < end <= row.count, room in `planes` for end - first.
bool unpack_row(const PackedRow& row, int first, int end, BlockPlanes& planes);

// Quantized coefficients of the blocks [first, end), coefficient k of the zigzag order at
// position[k] of its block.
void coefficients_of_planes(const BlockPlanes& planes, int first, int end,
                            const std::array<uint8_t, 64>& position, int16_t* out);

// Same result as idct_row() for the same coefficients. May write up to a multiple of 4 blocks in
// each row.
void idct_planes(const IdctTable& table, const BlockPlanes& planes, int count, uint8_t* out,
                 ptrdiff_t stride);

}  // namespace headrace
