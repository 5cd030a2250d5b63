// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/jpeg/progressive_scan.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/jpeg/progressive_scan_levels.h"

namespace headrace {
namespace {

inline uint64_t deposited(uint64_t bits, uint64_t mask) {
  uint64_t out = 0;
  for (; mask; mask &= mask - 1, bits >>= 1) {
    if (bits & 1) out |= mask & -mask;
  }
  return out;
}

inline void change(int16_t* block, uint64_t corrected, uint64_t begun, uint64_t negative, int by) {
  for (int k = 0; k < 64; ++k) {
    int16_t& value = block[kIdctFromZigzag[k]];
    if (corrected >> k & 1) value = static_cast<int16_t>(value + (value < 0 ? -by : by));
    if (begun >> k & 1) value = static_cast<int16_t>(negative >> k & 1 ? -by : by);
  }
}

}  // namespace
}  // namespace headrace

// These need the definitions above.
#include "headrace/kernels/jpeg/progressive_ones_loops.h"
#include "headrace/kernels/jpeg/progressive_scan_loops.h"

namespace headrace {
namespace {

const BandKernels& kernels() {
  static const ByLevel<const BandKernels*> by_level{&kBandKernels, band_kernels_avx2(),
                                                    band_kernels_avx512()};
  return slow_pdep() ? *band_kernels_slow_pdep() : *by_level.selected();
}

uint64_t reversed_bytes(uint64_t v) {  // the number of bits of each
  v = (v >> 1 & 0x5555555555555555) | (v & 0x5555555555555555) << 1;
  v = (v >> 2 & 0x3333333333333333) | (v & 0x3333333333333333) << 2;
  return (v >> 4 & 0x0f0f0f0f0f0f0f0f) | (v & 0x0f0f0f0f0f0f0f0f) << 4;
}

// Reverses the bits of each byte; also processes up to 7 bytes after `count`, which are zero.
void reverse_bits(uint8_t* bytes, size_t count) {
  for (size_t i = 0; i < count; i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes + i, sizeof(word));
    word = reversed_bytes(word);
    std::memcpy(bytes + i, &word, sizeof(word));
  }
}

}  // namespace

uint32_t ProgressiveScan::Table::find(uint32_t next16) const {
  for (uint32_t length = 1; length <= 16; ++length) {
    if (next16 >= limit[length]) continue;
    const int number = offset[length] + static_cast<int>(next16 >> (16 - length));
    return uint32_t{spec.symbols[static_cast<size_t>(number) & 255]} << 8 | length;
  }
  return 0;
}

bool ProgressiveScan::begin(const ScanForm& form, std::span<const HuffmanSpec* const> tables) {
  form_ = form;
  for (size_t i = 0; i < tables.size(); ++i) {
    if (!is_usable(*tables[i], form.is_dc() ? HuffmanUse::kDC : HuffmanUse::kAC)) return false;
    build(*tables[i], tables_[i]);
  }
  return true;
}

// The table entry for `next` bits that begin with a code of `length`.
uint32_t ProgressiveScan::entry(uint32_t next, uint32_t length, uint8_t symbol) const {
  const uint32_t plain = uint32_t{symbol} << 8 | length, size = symbol & 15;
  if (form_.refines) return refinement(length, symbol);
  if (form_.is_dc() || size == 0) return plain;
  if (length + size > kTableBits || size + static_cast<uint32_t>(form_.shift) > 15) return plain;
  const uint32_t field = next >> (kTableBits - length - size) & ((1u << size) - 1);
  const int value = field < 1u << (size - 1) ? static_cast<int>(field) + 1 - (1 << size)
                                             : static_cast<int>(field);
  return static_cast<uint32_t>(value * (1 << form_.shift)) << 16 | uint32_t{symbol} >> 4 << 8 |
         (length + size);
}

void ProgressiveScan::build(const HuffmanSpec& spec, Table& table) const {
  table.spec = spec;
  table.entries.fill(0);
  uint32_t code = 0;
  int symbols = 0;
  for (uint32_t length = 1; length <= 16; ++length) {
    const int count = spec.counts[length - 1];
    table.offset[length] = symbols - static_cast<int>(code);
    for (int i = 0; i < count && length <= kTableBits; ++i) {
      const uint32_t rest = kTableBits - length, first = (code + static_cast<uint32_t>(i)) << rest;
      const uint8_t symbol = spec.symbols[static_cast<size_t>(symbols + i)];
      for (uint32_t next = first; next < first + (1u << rest); ++next) {
        const uint32_t index = form_.refines ? reversed_16(next) >> (16 - kTableBits) : next;
        table.entries[index] = entry(next, length, symbol);
      }
    }
    symbols += count;
    code += static_cast<uint32_t>(count);
    table.limit[length] = code << (16 - length);
    code <<= 1;
  }
}

void ProgressiveScan::open(std::span<uint8_t> bytes) {
  if (form_.refines) reverse_bits(bytes.data(), bytes.size());
  start_ = bytes.data();
  end_ = start_ + bytes.size();
  cursor_ = {.next = start_};
  predictors_ = {};
}

bool ProgressiveScan::inside() const {
  return (cursor_.next - start_) * 8 - cursor_.count <= (end_ - start_) * 8;
}

bool ProgressiveScan::at_end() const {
  const ptrdiff_t left = (end_ - cursor_.next) * 8 + cursor_.count;
  return left >= 0 && left < 8 && cursor_.run == 0;
}

bool ProgressiveScan::walk(const ScanBlocks& blocks) {
  const BandKernels::Walk walk = form_.refines ? kernels().refine : kernels().begin;
  return walk(tables_[0], form_, end_ + kAhead, blocks, cursor_) && inside();
}

// Reads a 16-bit DC value; returns false on error.
bool ProgressiveScan::begin_value(const Table& table, int& predictor, int16_t& value) {
  refill_from_top(cursor_);
  uint32_t entry = table.entries[cursor_.bits >> (64 - kTableBits)];
  if (entry == 0) entry = table.find(static_cast<uint32_t>(cursor_.bits >> 48));
  if (entry == 0) return false;
  drop_from_top(cursor_, entry & 255);
  if (const uint32_t size = entry >> 8 & 15; size > 0) {
    predictor += value_from_top(cursor_.bits, size);
    drop_from_top(cursor_, size);
  }
  const int shifted = predictor * (1 << form_.shift);
  if (shifted != static_cast<int16_t>(shifted)) return false;
  value = static_cast<int16_t>(shifted);
  return true;
}

bool ProgressiveScan::walk(const ScanMcus& mcus, int at, int count) {
  for (int i = at; i < at + count; ++i) {
    for (int b = 0; b < mcus.blocks; ++b) {
      int16_t& value = mcus.first[b][i * mcus.step[b]];
      const uint8_t component = mcus.component[b];
      if (cursor_.next > end_ + kAhead) return false;
      if (!form_.refines) {
        if (!begin_value(tables_[component], predictors_[component], value)) return false;
        continue;
      }
      if (cursor_.count == 0) refill_from_below(cursor_);
      value = static_cast<int16_t>(value | static_cast<int>(cursor_.bits & 1) << form_.shift);
      drop_from_below(cursor_, 1);
    }
  }
  return inside();
}

}  // namespace headrace
