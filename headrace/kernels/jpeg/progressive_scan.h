// SPDX-License-Identifier: Apache-2.0
// Decodes the scans of a progressive JPEG (ISO/IEC 10918-1, G), a row of blocks at a time. Each
// scan adds bits to coefficients that earlier scans began, so all scans of a picture can be decoded
// in parallel, and no further than the needed rows.
//
// In addition to its 64 coefficients a block has a mask of those that are not zero (bit k: the k-th
// in zigzag order), which is all that later scans read. So a block whose pixels are not needed only
// needs a mask.
//
// A scan belongs to one thread. Anything suspicious (an invalid code, a coefficient outside the
// band, the end of the data) makes walk() return false, and the caller starts over with libjpeg.
// For any bytes, nothing is read outside [bytes, end + kScanPadding).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/kernels/jpeg/huffman.h"

namespace headrace {

constexpr size_t kScanPadding = 320;  // zero bytes required after unstuffed data

// The band and the bit positions, from the scan header.
struct ScanForm {
  int first = 0, last = 0;  // Ss, Se: coefficients in zigzag order
  int shift = 0;            // Al: the bit that a refinement scan adds, or the lowest bit of a first
                            // scan
  bool refines = false;     // Ah > 0
  bool is_dc() const { return first == 0; }
};

// Consecutive blocks of one component in a row.
struct ScanBlocks {
  int16_t* coefficients = nullptr;  // 64 per block, coefficient `natural` at kIdctFromNatural
  uint64_t* nonzero = nullptr;
  int count = 0;
  // The blocks whose coefficients are needed; only the masks are kept for the others.
  int kept_first = 0, kept_end = 0;
};

// Blocks of consecutive MCUs: block b of MCU i is at first[b] + i * step[b].
struct ScanMcus {
  int blocks = 0;  // blocks per MCU: 1 to 10
  std::array<uint8_t, 10> component{};
  std::array<int16_t*, 10> first{};
  std::array<ptrdiff_t, 10> step{};
};

class ProgressiveScan {
 public:
  // Tables by component of the scan; none if a scan refines DC values. False for those that libjpeg
  // rejects.
  bool begin(const ScanForm& form, std::span<const HuffmanSpec* const> tables);
  // Starts over with the unstuffed data between two markers; in refinement scans the bits of each
  // byte are reversed. REQUIRES: kScanPadding zeros after it.
  void open(std::span<uint8_t> bytes);

  // Decodes a scan of AC coefficients.
  bool walk(const ScanBlocks& blocks);
  // Decodes a scan of DC values: `count` MCUs starting at number `at`.
  bool walk(const ScanMcus& mcus, int at, int count);
  // Whether decoding ended where the data ends, apart from padding bits of the last byte.
  bool at_end() const;

  const ScanForm& form() const { return form_; }

  static constexpr int kTableBits = 10;
  struct Table {
    // By the next bits. Bits 0-7: how many bits the symbol takes; 0 if its code is longer, or
    // invalid. The other bits are
    //   for DC values: 8-15 the size of the difference, whose bits are not counted;
    //   for first AC scans: 16-31 the value, shifted into place (its bits are counted), and 8-15
    //     the zeros before it; or 0, and 8-15 the symbol (only its code is counted);
    //   for refinement scans: bit 16 + zeros, and 8 the size (the sign bit is counted); or 0,
    //     and 12-15 the length of an end-of-band run (its logarithm).
    std::array<uint32_t, 1 << kTableBits> entries;
    // For longer codes, by the next 16 bits, the first bit highest: codes of `length` are below
    // limit[length], and their symbol's index is offset[length] + (bits >> (16 - length)).
    std::array<uint32_t, 17> limit;
    std::array<int, 17> offset;
    HuffmanSpec spec;
    // Symbol << 8 | its code's length; 0 if no code matches.
    uint32_t find(uint32_t next16) const;
  };
  // The decoding position; kernels keep it in registers.
  struct Cursor {
    uint64_t bits = 0;  // the next bits, at the top; at the bottom in refinement scans
    int count = 0;      // how many of them are valid
    const uint8_t* next = nullptr;
    uint32_t run = 0;  // blocks whose bands still end immediately (EOBRUN)
  };

 private:
  static constexpr ptrdiff_t kAhead = 8;  // how far refills may read past the end

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
