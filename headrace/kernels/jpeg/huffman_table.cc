// SPDX-License-Identifier: Apache-2.0
#ifndef HEADRACE_LEVEL

#include <algorithm>
#include <array>
#include <memory>

#include "headrace/kernels/jpeg/huffman_lane.h"
#include "headrace/kernels/jpeg/huffman_tables.h"

namespace headrace {
namespace scalar {
namespace {

using namespace huffman;

// Adds a second symbol to each entry whose bits contain the next symbol's whole code.
void pairs(const uint32_t* singles, uint32_t* entries) {
  for (uint32_t i = 0; i < kAcSize; ++i) {
    const uint32_t first = singles[i], bits = bits_of(first);
    entries[i] = first;
    if (first & (kRare | kEnd) || advance_of(first) > 15 || bits >= kAcBits) continue;
    const uint32_t second = singles[i << bits & (kAcSize - 1)];
    const uint32_t all = bits + bits_of(second);
    if (second & kRare || all - last_size_of(second) > kAcBits || all > kMaxBits) continue;
    entries[i] = second + as_first(first);
  }
}

}  // namespace
}  // namespace scalar
}  // namespace headrace

#define HEADRACE_OWN_SCALAR
#define HEADRACE_NO_NEON
#define HEADRACE_KERNEL "headrace/kernels/jpeg/huffman_table.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {
namespace {

using namespace huffman;

void set_search(HuffmanTable::Tables& tables) {
  uint32_t code = 0;
  int symbols = 0;
  for (int length = 1; length <= 16; ++length) {
    const int count = tables.spec.counts[length - 1];
    tables.offset[length] = symbols - static_cast<int>(code);
    symbols += count;
    code += count;
    tables.limit[length] = code << (16 - length);
    code <<= 1;
  }
}

// One symbol per entry; 2^bits entries.
void set_singles(const HuffmanSpec& spec, HuffmanUse use, int bits, uint32_t* entries) {
  uint32_t* const end = entries + (size_t{1} << bits);
  int symbols = 0;
  for (int length = 1; length <= bits; ++length) {
    const size_t width = size_t{1} << (bits - length);
    for (int i = 0; i < spec.counts[length - 1]; ++i) {
      const uint8_t symbol = spec.symbols[symbols++];
      uint32_t entry = use == HuffmanUse::kDC ? dc_entry(length, symbol) : ac_entry(length, symbol);
      if (bits_of(entry) > kMaxBits) entry = kRare;
      entries = std::fill_n(entries, width, entry);
    }
  }
  std::fill(entries, end, kRare);
}

}  // namespace

// Like libjpeg's jpeg_make_d_derived_tbl(): no code may be all ones, DC symbols are sizes.
bool is_usable(const HuffmanSpec& spec, HuffmanUse use) {
  int symbols = 0, last = 0;
  for (int length = 1; length <= 16; ++length) {
    symbols += spec.counts[length - 1];
    if (spec.counts[length - 1]) last = length;
  }
  if (symbols > 256) return false;
  uint32_t code = 0;
  for (int length = 1; length <= last; ++length) {
    code += spec.counts[length - 1];
    if (code >= 1u << length) return false;
    code <<= 1;
  }
  return use == HuffmanUse::kAC || std::all_of(spec.symbols.begin(), spec.symbols.begin() + symbols,
                                               [](uint8_t symbol) { return symbol <= 15; });
}

HuffmanTable::HuffmanTable() = default;
HuffmanTable::~HuffmanTable() = default;
HuffmanTable::HuffmanTable(HuffmanTable&&) noexcept = default;
HuffmanTable& HuffmanTable::operator=(HuffmanTable&&) noexcept = default;

bool HuffmanTable::build(const HuffmanSpec& spec, HuffmanUse use) {
  const SimdLevel level = simd_level();  // tests compare them
  const auto is_wanted = [&](const Tables& tables) {
    return tables.use == use && tables.level == level && tables.spec == spec;
  };
  if (tables_ && is_wanted(*tables_)) return true;
  if (!is_usable(spec, use)) return false;
  // The tables that this thread built last, as long as they are in use.
  thread_local std::array<std::weak_ptr<const Tables>, 8> recent;
  thread_local size_t made = 0;
  for (const auto& known : recent) {
    std::shared_ptr<const Tables> tables = known.lock();
    if (!tables || !is_wanted(*tables)) continue;
    tables_ = std::move(tables);
    return true;
  }
  const auto tables = std::make_shared_for_overwrite<Tables>();
  tables->spec = spec;
  tables->use = use;
  tables->level = level;
  set_search(*tables);
  if (use == HuffmanUse::kDC) {
    tables->keep(~HuffmanCursor::kBlock);
    set_singles(spec, use, kDcBits, tables->entries());
  } else {
    tables->keep(~uint64_t{0});
    std::array<uint32_t, kAcSize> singles;
    set_singles(spec, use, kAcBits, singles.data());
    HEADRACE_BY_LEVEL(pairs)(singles.data(), tables->entries());
  }
  tables_ = tables;
  recent[made++ % recent.size()] = tables;
  return true;
}

}  // namespace headrace

#else  // at each SIMD level

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

using namespace huffman;

void pairs(const uint32_t* singles, uint32_t* entries) {
  for (int i = 0; i < kAcSize; i += kLanes) {
    const Ints first = Load(singles + i), bits = And(first, Set(63));
    const Ints advance = And(first, Set(127 << 8));
    const Mask may_lead = MaskedLt(MaskedLt(HasNoBits(first, kRare | kEnd), advance, Set(16 << 8)),
                                   bits, Set(kAcBits));
    const Ints after = And(Shl(Add(Iota(), Set(i)), bits), Set(kAcSize - 1));
    const Ints second = MaskedGatherOr(singles, after, may_lead, Set(int{kRare}));
    const Ints all = Add(bits, And(second, Set(63)));
    const Ints size = And(ShiftRight<16>(second), Set(15));
    const Mask follows =
        MaskedLt(MaskedLt(HasNoBits(second, kRare), Sub(all, size), Set(kAcBits + 1)), all,
                 Set(kMaxBits + 1));
    const Ints as_first =
        Add(Add(Add(bits, ShiftLeft<28>(bits)), Add(advance, ShiftLeft<16>(advance))),
            ShiftLeft<4>(And(first, Set(15 << 16))));
    Store(entries + i, IfThenElse(follows, Add(second, as_first), first));
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
