// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/jpeg/packed_blocks.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/jpeg/packed_blocks_levels.h"
#include "headrace/kernels/jpeg/packed_blocks_order.h"

namespace headrace {
namespace {

static_assert(std::endian::native == std::endian::little, "fields are read in memory order");
static_assert(Buffer::kPadding >= 32, "vectors of planes are read whole");

constexpr int divided_up(int value, int by) { return (value + by - 1) / by; }

// A group's entry: the lengths of its streams in units of 1 << shift bytes, and the DC value before
// its first block.
struct GroupEntry {
  std::array<uint8_t, 4> length;
  int16_t dc;
};
static_assert(sizeof(GroupEntry) == kGroupBytes);

uint32_t lengths_at(const PackedRow& row, int group) {
  uint32_t four;
  std::memcpy(&four, row.groups + kGroupBytes * group, 4);
  return four;
}

size_t bytes_before(const PackedRow& row, int group) {
  size_t sum = 0;
  for (int g = 0; g < group; ++g) {
    const uint32_t four = lengths_at(row, g);
    const uint32_t pairs = (four & 0x00FF00FF) + (four >> 8 & 0x00FF00FF);
    sum += (pairs & 0xFFFF) + (pairs >> 16);
  }
  return sum << row.shift;
}

}  // namespace

void pack_row(const int16_t* blocks, int count, const std::array<uint8_t, 64>& position,
              std::vector<uint8_t>& out) {
  static const ByLevel<PackGroup> by_level{pack_group_scalar(), pack_group_avx2(),
                                           pack_group_avx2()};
  const PackGroup pack_group = slow_pdep() ? pack_group_slow_pext() : by_level.selected();
  const int groups = divided_up(count, kGroupBlocks);
  const size_t tables = packed_row_tables(count);
  std::vector<uint8_t> quads(kQuadBytes * divided_up(count, kQuadBlocks) + kGroupBlocks);
  const auto drafts = std::make_unique_for_overwrite<GroupDraft[]>(groups);
  int longest = 0;
  for (int g = 0; g < groups; ++g) {
    const int first = g * kGroupBlocks;
    pack_group(blocks + 64 * ptrdiff_t{first}, std::min(kGroupBlocks, count - first),
               position.data(), drafts[g], quads.data() + first);
    longest = std::max(longest, *std::max_element(drafts[g].bytes.begin(), drafts[g].bytes.end()));
  }
  int shift = 0;
  while (longest > 255 << shift) ++shift;
  const size_t at = out.size();
  out.resize(at + tables);
  out[at] = static_cast<uint8_t>(shift);
  uint8_t* const entries =
      std::copy_n(quads.data(), kQuadBytes * divided_up(count, kQuadBlocks), out.data() + at + 1);
  size_t entry_at_byte = entries - out.data();
  for (const GroupDraft& draft : std::span(drafts.get(), groups)) {
    GroupEntry entry{.length = {}, .dc = static_cast<int16_t>(draft.dc)};
    for (int j = 0; j < 4; ++j) {
      entry.length[j] = static_cast<uint8_t>(divided_up(draft.bytes[j], 1 << shift));
      out.insert(out.end(), draft.stream[j].data(), draft.stream[j].data() + draft.bytes[j]);
      out.resize(out.size() + (size_t{entry.length[j]} << shift) - draft.bytes[j]);
    }
    std::memcpy(out.data() + entry_at_byte, &entry, kGroupBytes);
    entry_at_byte += kGroupBytes;
  }
}

size_t packed_row_tables(int count) {
  return 1 + kQuadBytes * divided_up(count, kQuadBlocks) +
         kGroupBytes * divided_up(count, kGroupBlocks);
}

bool open_packed_row(std::span<const uint8_t> bytes, int count, PackedRow& row) {
  const size_t tables = packed_row_tables(count);
  if (bytes.size() < tables || bytes[0] > kMaxStreamShift) return false;
  row.shift = bytes[0];
  row.quads = bytes.data() + 1;
  row.groups = row.quads + kQuadBytes * divided_up(count, kQuadBlocks);
  row.payload = bytes.data() + tables;
  row.payload_bytes = bytes.size() - tables;
  row.count = count;
  return true;
}

void BlockPlanes::resize(int count) {
  const size_t quads = divided_up(count, kQuadBlocks);
  for (Buffer& set : sets_) set.resize(quads * kQuadBlocks * 8 * sizeof(uint64_t));
  dc_.resize(quads * kQuadBlocks * sizeof(int16_t));
  levels_.resize(quads);
}

size_t BlockPlanes::bytes_of(int count) {
  const size_t quads = divided_up(count, kQuadBlocks);
  return quads * (kQuadBlocks * (kDepths * 8 * sizeof(uint64_t) + sizeof(int16_t)) + 1) +
         (kDepths + 2) * Buffer::kPadding;
}

size_t BlockPlanes::held_bytes() const {
  size_t bytes = dc_.capacity() + levels_.capacity();
  for (const Buffer& set : sets_) bytes += set.capacity();
  return bytes;
}

bool unpack_row(const PackedRow& row, int first, int end, BlockPlanes& planes) {
  static const ByLevel<UnpackQuads> by_level{unpack_quads_scalar(), unpack_quads_bmi2(),
                                             unpack_quads_bmi2()};
  const UnpackQuads unpack_quads = slow_pdep() ? unpack_quads_compact_avx2() : by_level.selected();
  uint64_t start = bytes_before(row, first / kGroupBlocks);
  uint64_t beyond = 0;  // the highest bit is set if a stream was read past its end
  PlanePlace place{{planes.planes(0, 0), planes.planes(1, 0), planes.planes(2, 0)},
                   planes.dc(),
                   planes.levels()};
  for (int g = first / kGroupBlocks; g * kGroupBlocks < end; ++g) {
    GroupState state;
    std::array<uint64_t, 4> ends;
    uint32_t lengths = lengths_at(row, g);
    for (int j = 0; j < 4; ++j, lengths >>= 8) {
      state.at[j] = start * 8;
      start += uint64_t{lengths & 255} << row.shift;
      ends[j] = start * 8;
    }
    if (start > row.payload_bytes) return false;
    state.payload = row.payload;
    int16_t dc;
    std::memcpy(&dc, row.groups + kGroupBytes * g + 4, sizeof dc);
    state.dc = dc;
    const int skip = std::max(0, first - g * kGroupBlocks) / kQuadBlocks;
    const int quads = divided_up(std::min(end - g * kGroupBlocks, kGroupBlocks), kQuadBlocks);
    unpack_quads(state, row.quads + size_t{kGroupBlocks} * g, skip, quads - skip, place);
    for (int j = 0; j < 4; ++j) beyond |= ends[j] - state.at[j];
    for (uint64_t*& set : place.set) set += 8 * kQuadBlocks * (quads - skip);
    place.dc += kQuadBlocks * (quads - skip);
    place.levels += quads - skip;
  }
  return beyond >> 63 == 0;
}

void coefficients_of_planes(const BlockPlanes& planes, int first, int end,
                            const std::array<uint8_t, 64>& position, int16_t* out) {
  for (int block = first; block < end; ++block, out += 64) {
    std::memset(out, 0, 64 * sizeof(int16_t));
    const int levels = planes.levels()[block / kQuadBlocks];
    out[position[0]] = planes.dc()[block];
    if (levels & kCompactQuad) {
      const auto* low = reinterpret_cast<const int8_t*>(planes.planes(0, block));
      const auto* high = reinterpret_cast<const int8_t*>(planes.planes(1, block));
      const int scale = levels - kCompactQuad > BlockPlanes::kBits ? 1 << BlockPlanes::kBits : 0;
      for (uint64_t any = *planes.planes(2, block); any; any &= any - 1) {
        out[position[std::countr_zero(any)]] = static_cast<int16_t>(*low++ + scale * *high++);
      }
      continue;
    }
    for (int depth = 0; depth * BlockPlanes::kBits < levels; ++depth) {
      const uint64_t* const plane = planes.planes(depth, block);
      const int count = std::min(levels - depth * BlockPlanes::kBits, BlockPlanes::kBits);
      uint64_t any = 0;
      for (int i = 0; i < count; ++i) any |= plane[i];
      for (; any; any &= any - 1) {
        const int k = std::countr_zero(any);
        int magnitude = 0;
        for (int i = 0; i < count; ++i) magnitude |= int(plane[i] >> k & 1) << i;
        magnitude <<= BlockPlanes::kBits * depth;
        const bool negative = plane[BlockPlanes::kBits] >> k & 1;
        int16_t& value = out[position[k]];
        value = static_cast<int16_t>(value + (negative ? -magnitude : magnitude));
      }
    }
  }
}

namespace {

void idct_planes_scalar(const IdctTable& table, const BlockPlanes& planes, int count, uint8_t* out,
                        ptrdiff_t stride) {
  for (int block = 0; block < count; ++block, out += 8) {
    std::array<int16_t, 64> words;
    coefficients_of_planes(planes, block, block + 1, kIdctFromZigzag, words.data());
    idct_block(words.data(), table.step.data(), out, stride);
  }
}

}  // namespace

void idct_planes(const IdctTable& table, const BlockPlanes& planes, int count, uint8_t* out,
                 ptrdiff_t stride) {
  static const ByLevel<IdctPlanes> by_level{nullptr, idct_planes_avx2(), idct_planes_avx512(),
                                            idct_planes_neon()};
  const IdctPlanes idct = by_level.selected();
  if (!idct) return idct_planes_scalar(table, planes, count, out, stride);
  idct(table, {planes.planes(0, 0), planes.planes(1, 0), planes.planes(2, 0)}, planes.dc(),
       planes.levels(), divided_up(count, kQuadBlocks), out, stride);
}

}  // namespace headrace
