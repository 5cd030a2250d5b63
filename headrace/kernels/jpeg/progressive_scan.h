// SPDX-License-Identifier: Apache-2.0
// The scans of a progressive JPEG (ISO/IEC 10918-1, G), a row of blocks at a time: each adds bits
// to coefficients that earlier ones began. All scans of a picture can so be walked side by side,
// and no further than the rows that are wanted.
//
// Beside its 64 coefficients a block has a mask of those that are not zero (bit k: the k-th in
// zigzag order), which is all that later scans look at. So a block whose pixels nobody wants needs
// a mask alone.
//
// A scan belongs to one thread. Whatever is suspicious (no such code, a coefficient outside the
// band, the end of the data) makes a walk return false, and the caller starts over with libjpeg.
// Nothing is read outside [bytes, end + kScanPadding), whatever the bytes are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/kernels/jpeg/huffman.h"

namespace headrace {

constexpr size_t kScanPadding = 320;  // zero bytes that must follow unstuffed data

// The band and the bits, from the scan header.
struct ScanForm {
  int first = 0, last = 0;  // Ss, Se: coefficients in zigzag order
  int shift = 0;            // Al: the bit that the scan adds, or the lowest of those that it begins
  bool refines = false;     // Ah > 0
  bool is_dc() const { return first == 0; }
};

// Blocks of one component that follow each other in a row.
struct ScanBlocks {
  int16_t* coefficients = nullptr;  // 64 a block, coefficient `natural` at kIdctFromNatural
  uint64_t* nonzero = nullptr;
  int count = 0;
  // The blocks whose coefficients are wanted; of the others the masks alone are kept.
  int kept_first = 0, kept_end = 0;
};

// Blocks of MCUs that follow each other: block b of MCU i lies at first[b] + i * step[b].
struct ScanMcus {
  int blocks = 0;  // of an MCU: 1 to 10
  std::array<uint8_t, 10> component{};
  std::array<int16_t*, 10> first{};
  std::array<ptrdiff_t, 10> step{};
};

class ProgressiveScan {
 public:
  // Tables by component of the scan; none where a scan refines DC values. False for those that
  // libjpeg refuses.
  bool begin(const ScanForm& form, std::span<const HuffmanSpec* const> tables);
  // Starts over with what stands between two markers, unstuffed; the bits of each byte are reversed
  // there where the scan refines. REQUIRES: kScanPadding zeros after it.
  void open(std::span<uint8_t> bytes);

  // Walks a scan of AC coefficients.
  bool walk(const ScanBlocks& blocks);
  // Walks a scan of DC values: `count` MCUs from the `at`-th on.
  bool walk(const ScanMcus& mcus, int at, int count);
  // Whether the walk ended where the data ends, but for bits that fill the last byte.
  bool at_end() const;

  const ScanForm& form() const { return form_; }

  static constexpr int kTableBits = 10;
  struct Table {
    // By the next bits. Bits 0-7: how many the symbol takes; 0 where its code is longer, or there
    // is none. The rest is
    //   of DC values: 8-15 the size of the difference, whose bits are not among those counted;
    //   of AC coefficients that begin: 16-31 the value, shifted into place, its bits counted, and
    //     8-15 the zeros in front of it; or 0, and 8-15 the symbol, nothing but its code counted;
    //   of those that are refined: bit 16 + zeros, and 8 the size, its sign's bit counted; or 0,
    //     and 12-15 the length of a run of ended bands (its logarithm).
    std::array<uint32_t, 1 << kTableBits> entries;
    // For longer codes, by the next 16 bits, the highest first: codes of `length` are below
    // limit[length], and offset[length] + (bits >> (16 - length)) numbers their symbols.
    std::array<uint32_t, 17> limit;
    std::array<int, 17> offset;
    HuffmanSpec spec;
    // The symbol << 8 | its code's length; 0 where there is none.
    uint32_t find(uint32_t next16) const;
  };
  // Where the walk stands; kernels keep it in registers.
  struct Cursor {
    uint64_t bits = 0;  // the next, from the top; from below where the scan refines
    int count = 0;      // how many of them are valid
    const uint8_t* next = nullptr;
    uint32_t run = 0;  // blocks that are still to end their bands at once (EOBRUN)
  };

 private:
  static constexpr ptrdiff_t kAhead = 8;  // how far refills may get beyond the end

  void build(const HuffmanSpec& spec, Table& table) const;
  uint32_t entry(uint32_t next, uint32_t length, uint8_t symbol) const;
  bool inside() const;
  bool begin_value(const Table& table, int& predictor, int16_t& value);

  ScanForm form_;
  Cursor cursor_;
  const uint8_t* start_ = nullptr;
  const uint8_t* end_ = nullptr;
  std::array<int, 4> predictors_{};
  std::array<Table, 4> tables_;
};

}  // namespace headrace
