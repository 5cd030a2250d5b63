// SPDX-License-Identifier: Apache-2.0
// The walk over a band of AC coefficients. Included by each SIMD level's file between its target
// pragmas, which first defines, for masks of 64 coefficients in zigzag order:
//
//   uint64_t deposited(uint64_t bits, uint64_t mask);  // the lowest bits where the mask has ones
//   class Ones;
//     // the set bits of a mask; take(1 << n) skips the next n, and returns the one after them
//   void change(int16_t* block, uint64_t corrected, uint64_t begun, uint64_t negative, int by);
//     // moves the corrected coefficients away from 0 by this much, and sets new ones to it
//
// Internal to kernels/.

namespace headrace {
namespace {

using Table = ProgressiveScan::Table;
using Cursor = ProgressiveScan::Cursor;

constexpr int kRefilled = 56;  // minimum number of valid bits after a refill
constexpr uint32_t kLongestRun = 15;

[[gnu::always_inline]] inline void refill_from_top(Cursor& at) {
  uint64_t word;
  std::memcpy(&word, at.next, sizeof(word));
  at.bits |= __builtin_bswap64(word) >> at.count;
  at.next += (63 - at.count) >> 3;
  at.count |= kRefilled;
}

[[gnu::always_inline]] inline void refill_from_below(Cursor& at) {
  uint64_t word;
  std::memcpy(&word, at.next, sizeof(word));
  at.bits |= word << at.count;
  at.next += (63 - at.count) >> 3;
  at.count |= kRefilled;
}

[[gnu::always_inline]] inline void drop_from_top(Cursor& at, uint32_t bits) {
  at.bits <<= bits;
  at.count -= static_cast<int>(bits);
}

[[gnu::always_inline]] inline void drop_from_below(Cursor& at, uint32_t bits) {
  at.bits >>= bits;
  at.count -= static_cast<int>(bits);
}

// F.2.2.1, EXTEND. REQUIRES: size > 0.
[[gnu::always_inline]] inline int value_from_top(uint64_t bits, uint32_t size) {
  const auto field = static_cast<int>(bits >> (64 - size));
  return field < (1 << (size - 1)) ? field + 1 - (1 << size) : field;
}

// Handles a code, or a value, that is not in the table's entries. Returns the coefficient up to
// which the block is done; -1 for suspicious data, 64 or more for the end of the band.
inline int begin_rarely(const Table& table, const ScanForm& form, bool keeps, int k, int16_t* block,
                        uint64_t& nonzero, Cursor& at) {
  refill_from_top(at);
  uint32_t entry = table.entries[at.bits >> (64 - ProgressiveScan::kTableBits)];
  if (entry == 0) entry = table.find(static_cast<uint32_t>(at.bits >> 48));
  if (entry == 0) return -1;
  drop_from_top(at, entry & 255);
  const uint32_t symbol = entry >> 8 & 255, zeros = symbol >> 4, size = symbol & 15;
  if (size > 0) {
    k += static_cast<int>(zeros);
    // Beyond 16 bits, wraps like libjpeg.
    if (k > form.last || size + static_cast<uint32_t>(form.shift) > 15) return -1;
    const int value = value_from_top(at.bits, size);
    drop_from_top(at, size);
    if (keeps) block[kIdctFromZigzag[k]] = static_cast<int16_t>(value * (1 << form.shift));
    nonzero |= uint64_t{1} << k;
    return k + 1;
  }
  if (zeros == kLongestRun) return k + 16;
  at.run = (1u << zeros) - 1;
  if (zeros > 0) {
    at.run += static_cast<uint32_t>(at.bits >> (64 - zeros));
    drop_from_top(at, zeros);
  }
  return 64;
}

template <bool keeps>
[[gnu::always_inline]] inline bool begin_block(const Table& table, const ScanForm& form,
                                               int16_t* block, uint64_t& mask, Cursor& at) {
  constexpr int kShift = 64 - ProgressiveScan::kTableBits;
  uint64_t nonzero = 0;
  int k = form.first;
  while (k <= form.last) {
    refill_from_top(at);
    // Three entries of up to kTableBits each, and one long code, fit between refills.
    uint32_t entry = table.entries[at.bits >> kShift];
    for (int i = 0; i < 3 && entry >> 16; ++i) {
      k += static_cast<int>(entry >> 8 & 255);
      if (k > form.last) return false;
      if constexpr (keeps) block[kIdctFromZigzag[k]] = static_cast<int16_t>(entry >> 16);
      nonzero |= uint64_t{1} << k;
      ++k;
      drop_from_top(at, entry & 255);
      if (k > form.last) break;
      entry = table.entries[at.bits >> kShift];
    }
    if (k > form.last) break;
    if (entry >> 16) continue;
    k = begin_rarely(table, form, keeps, k, block, nonzero, at);
    if (k < 0) return false;
  }
  mask |= nonzero;
  return true;
}

bool begin_band(const Table& table, const ScanForm& form, const uint8_t* limit,
                const ScanBlocks& blocks, Cursor& cursor) {
  Cursor at = cursor;
  for (int x = 0; x < blocks.count; ++x) {
    if (at.run > 0) {  // no coefficient begins in these
      const uint32_t passed = std::min(at.run, static_cast<uint32_t>(blocks.count - x));
      at.run -= passed;
      x += static_cast<int>(passed) - 1;
      continue;
    }
    if (at.next > limit) return false;
    const bool keeps = x >= blocks.kept_first && x < blocks.kept_end;
    int16_t* const block = blocks.coefficients + ptrdiff_t{x} * 64;
    uint64_t& mask = blocks.nonzero[x];
    if (!(keeps ? begin_block<true>(table, form, block, mask, at)
                : begin_block<false>(table, form, block, mask, at))) {
      return false;
    }
  }
  cursor = at;
  return true;
}

// The correction bits of a block's coefficients, in stream order; they are applied at the end of
// the block.
struct Corrections {
  uint64_t bits = 0;
  int count = 0;
};

[[gnu::always_inline]] inline void take_corrections(uint64_t of, Cursor& at, Corrections& taken) {
  const auto take = [&](int count) {
    taken.bits |= (at.bits & ((uint64_t{1} << count) - 1)) << taken.count;
    taken.count += count;
    drop_from_below(at, static_cast<uint32_t>(count));
  };
  int count = std::popcount(of);  // 63 at most, in total
  if (__builtin_expect(count > at.count, 0)) {
    refill_from_below(at);
    if (count > at.count) {
      take(32);
      refill_from_below(at);
      count -= 32;
    }
  }
  take(count);
}

inline uint32_t reversed_16(uint32_t v) {
  v = (v >> 1 & 0x5555) | (v & 0x5555) << 1;
  v = (v >> 2 & 0x3333) | (v & 0x3333) << 2;
  v = (v >> 4 & 0x0f0f) | (v & 0x0f0f) << 4;
  return (v >> 8 & 0x00ff) | (v & 0x00ff) << 8;
}

// Handles the end of a block's band, and of the bands of a run of blocks after it.
inline void end_bands(uint32_t zeros, Cursor& at) {
  at.run = 1u << zeros;
  if (zeros == 0) return;
  at.run += reversed_16(static_cast<uint32_t>(at.bits & 0xffff)) >> (16 - zeros);
  drop_from_below(at, zeros);
}

bool refine_band(const Table& table, const ScanForm& form, const uint8_t* limit,
                 const ScanBlocks& blocks, Cursor& cursor) {
  constexpr uint32_t kEntries = (1u << ProgressiveScan::kTableBits) - 1;
  constexpr int kMaxOfSymbol = 32;  // a code, a sign, or the length of a run of ended bands
  const uint64_t band = (~uint64_t{0} >> (63 - form.last)) & (~uint64_t{0} << form.first);
  Cursor at = cursor;
  for (int x = 0; x < blocks.count; ++x) {
    if (at.next > limit) return false;
    const uint64_t nonzero = blocks.nonzero[x] & band;
    uint64_t rest = band, begun = 0, negative = 0;
    Corrections corrections;
    if (at.run == 0) {
      Ones zeros(band & ~nonzero);
      while (rest) {
        if (at.count < kMaxOfSymbol) refill_from_below(at);
        uint32_t entry = table.entries[at.bits & kEntries];
        if (__builtin_expect(entry >> 16 == 0, 0)) {
          if (entry == 0) {
            const uint32_t found = table.find(reversed_16(static_cast<uint32_t>(at.bits & 0xffff)));
            entry = refinement(found & 255, found >> 8);
            if (entry == 0) return false;
          }
          if (entry >> 16 == 0) {
            drop_from_below(at, entry & 255);
            end_bands(entry >> 12, at);
            break;
          }
        }
        const uint32_t bits = entry & 255;
        const uint64_t begins = -uint64_t{entry >> 8 & 1}, minus = (at.bits >> (bits - 1) & 1) - 1;
        drop_from_below(at, bits);
        // Skips this many zero coefficients; all of them if there are fewer.
        const uint64_t place = zeros.take(entry >> 16);
        const uint64_t passed = (place ^ (place - 1)) & rest;
        take_corrections(passed & nonzero, at, corrections);
        if (__builtin_expect(place == 0 && begins, 0)) return false;
        begun |= place & begins;
        negative |= place & begins & minus;
        rest &= ~passed;
      }
    }
    if (at.run > 0) {
      take_corrections(rest & nonzero, at, corrections);
      --at.run;
    }
    blocks.nonzero[x] |= begun;
    const bool keeps = x >= blocks.kept_first && x < blocks.kept_end;
    if (keeps && (corrections.bits | begun)) {
      const uint64_t corrected = deposited(corrections.bits, nonzero);
      change(blocks.coefficients + ptrdiff_t{x} * 64, corrected, begun, negative, 1 << form.shift);
    }
  }
  cursor = at;
  return true;
}

constexpr BandKernels kBandKernels{begin_band, refine_band};

}  // namespace
}  // namespace headrace
