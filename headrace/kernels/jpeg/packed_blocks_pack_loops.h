// SPDX-License-Identifier: Apache-2.0
// Coefficients -> bits of a packed row: the inverse of packed_blocks_unpack_loops.h, and included
// in the same way; `Bits` is the level's implementation of gathering bits by a mask and splitting
// words.

namespace headrace {
namespace {

// Bits of one stream of a group.
struct StreamWriter {
  uint8_t* next;
  uint64_t bits = 0;
  int count = 0;  // number of bits, fewer than 64
};

// REQUIRES: 0 <= width < 64, bits of `value` above `width` are zero.
inline void put_bits(StreamWriter& w, uint64_t value, int width) {
  w.bits |= value << w.count;
  const int count = w.count + width;
  if (count >= 64) {
    __builtin_memcpy(w.next, &w.bits, 8);
    w.next += 8;
    w.bits = w.count ? value >> (64 - w.count) : 0;
  }
  w.count = count & 63;
}

// A block as bit planes: plane[i] has bit i of the magnitudes of its AC coefficients.
struct DraftBlock {
  uint64_t plane[16] = {};
  uint64_t signs = 0, any = 0;
  int last = 0, levels = 0;
};

template <class Bits>
inline void take_apart(const int16_t* block, const uint8_t* position, DraftBlock& b) {
  alignas(64) int16_t zigzag[64];
  for (int k = 0; k < 64; ++k) zigzag[k] = block[position[k]];
  zigzag[0] = 0;
  Magnitudes magnitudes;
  const unsigned all = Bits::magnitudes(zigzag, magnitudes);
  if (!all) return;
  Bits::planes(magnitudes.low.data(), b.plane);
  if (all > 255) Bits::planes(magnitudes.high.data(), b.plane + 8);
  b.signs = magnitudes.signs;
  for (const uint64_t plane : b.plane) b.any |= plane;
  b.last = 63 - __builtin_clzll(b.any);
  b.levels = 32 - __builtin_clz(all);
}

// Bits that differences from -low to high take in two's complement.
inline int width_of_differences(int smallest, int largest) {
  int width = 0;
  if (smallest < 0 || largest > 0) {
    width = 1;
    while (smallest < -(1 << (width - 1)) || largest >= 1 << (width - 1)) ++width;
  }
  return width;
}

// A quad of blocks: what determines its code.
struct DraftQuad {
  DraftBlock block[4];
  int dc[4] = {}, difference[4] = {};
  int levels = 1, width = 0;
  bool dense = false;  // Note [Levels of a quad]
};

// Whether the block needs the longest loads of packed_blocks_unpack_loops.h.
template <class Bits>
inline bool is_dense(const DraftBlock& b) {
  int count[9] = {};  // number of coefficients with at least this many bits
  uint64_t mask = 0;
  for (int s = 16; s >= 1; --s) {
    mask |= b.plane[s - 1];
    if (s < 9) count[s] = Bits::count(mask);
  }
  return count[1] > 57 || count[3] + count[4] > 57 || count[5] + 2 * count[6] + count[7] > 57;
}

template <class Bits>
inline void draft_quad(const int16_t* blocks, int count, const uint8_t* position, int predictor,
                       DraftQuad& quad) {
  int smallest = 0, largest = 0;
  for (int j = 0; j < 4; ++j) {
    quad.dc[j] = j < count ? blocks[64 * j + position[0]] : predictor;
    const int difference = quad.difference[j] = quad.dc[j] - predictor;
    predictor = quad.dc[j];
    smallest = difference < smallest ? difference : smallest;
    largest = difference > largest ? difference : largest;
    if (j >= count) continue;
    DraftBlock& block = quad.block[j];
    take_apart<Bits>(blocks + 64 * j, position, block);
    quad.levels = block.levels > quad.levels ? block.levels : quad.levels;
    if (block.any && is_dense<Bits>(block)) quad.dense = true;
  }
  quad.width = width_of_differences(smallest, largest);
}

inline int code_of(const DraftQuad& quad) {
  if (quad.width > 15 || quad.levels > 12) return kEscape;
  if (!quad.dense) return quad.levels - 1;
  return quad.levels <= 7 ? kDense7 : quad.levels <= 9 ? kDense9 : kDense12;
}

template <class Bits>
inline void write_block(const DraftBlock& b, int levels, StreamWriter& w) {
  if (!b.any) return;
  put_bits(w, (b.any ^ uint64_t{1} << b.last) >> 1, b.last - 1);
  uint64_t mask[17] = {};  // the coefficients with at least this many bits
  for (int s = levels; s >= 1; --s) mask[s - 1] = b.plane[s - 1] | mask[s];
  int count = Bits::count(b.any);
  put_bits(w, Bits::gather(b.signs, b.any), count);
  for (int s = 2; s <= levels; ++s) {
    put_bits(w, Bits::gather(mask[s - 1], mask[s - 2]), count);
    count = Bits::count(mask[s - 1]);
    put_bits(w, Bits::gather(b.plane[s - 2], mask[s - 1]), count);
  }
}

template <class Bits>
void pack_group(const int16_t* blocks, int count, const uint8_t* position, GroupDraft& group,
                uint8_t* quads) {
  StreamWriter writer[4];
  for (int j = 0; j < 4; ++j) writer[j].next = group.stream[j].data();
  int predictor = group.dc = blocks[position[0]];
  for (int first = 0; first < count; first += 4) {
    DraftQuad quad;
    draft_quad<Bits>(blocks + 64 * first, count - first, position, predictor, quad);
    predictor = quad.dc[3];
    const int code = code_of(quad), levels = kLevelsOfCode[code];
    const int width = code == kEscape ? 0 : quad.width;
    uint32_t header = static_cast<uint32_t>(width) << kDcWidthAt | static_cast<uint32_t>(code)
                                                                       << kLevelCodeAt;
    for (int j = 0; j < 4; ++j) {
      header |= static_cast<uint32_t>(quad.block[j].last) << (6 * j);
      if (code == kEscape) {
        put_bits(writer[j], static_cast<uint16_t>(quad.dc[j]), kEscapeDcBits);
      } else {
        put_bits(writer[j], static_cast<uint64_t>(quad.difference[j]) & ((1u << width) - 1), width);
      }
      write_block<Bits>(quad.block[j], levels, writer[j]);
    }
    __builtin_memcpy(quads + first, &header, 4);
  }
  for (int j = 0; j < 4; ++j) {
    StreamWriter& w = writer[j];
    __builtin_memcpy(w.next, &w.bits, 8);
    w.next += (w.count + 7) / 8;
    group.bytes[j] = static_cast<int>(w.next - group.stream[j].data());
  }
}

}  // namespace
}  // namespace headrace
