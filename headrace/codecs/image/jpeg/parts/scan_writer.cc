// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/parts/scan_writer.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "headrace/codecs/image/jpeg/headers/frame.h"

namespace headrace {
namespace {

// For four neighbors in natural order, one bit each: the bits of their positions in zigzag order.
using ZigzagBits = std::array<std::array<uint64_t, 16>, 16>;
const ZigzagBits kZigzagBits = [] {
  ZigzagBits bits{};
  for (int k = 0; k < 64; ++k) {
    const int natural = kNaturalFromZigzag[k];
    const int lane = std::endian::native == std::endian::little ? natural % 4 : 3 - natural % 4;
    for (int four = 0; four < 16; ++four) {
      if (four >> lane & 1) bits[natural / 4][four] |= uint64_t{1} << k;
    }
  }
  return bits;
}();

// Bit k is set if coefficient k in zigzag order is not zero. Most are zero, so a writer that visits
// only the others is several times faster than one that visits all.
uint64_t zigzag_mask(const int16_t* block) {
  constexpr uint64_t kLow15 = 0x7FFF7FFF7FFF7FFFu, kTop = 0x8000800080008000u;
  uint64_t mask = 0;
  for (int i = 0; i < 16; ++i) {
    uint64_t four;
    std::memcpy(&four, block + 4 * i, sizeof(four));
    const uint64_t tops = (((four & kLow15) + kLow15) | four) & kTop;
    // Moves bits 0, 16, 32 and 48 to 48, 49, 50 and 51; the other partial products stay below.
    const uint64_t gathered = (tops >> 15) * (uint64_t{1} << 48 | uint64_t{1} << 33 | 1u << 18 | 8);
    mask |= kZigzagBits[i][gathered >> 48 & 15];
  }
  return mask;
}

constexpr int kEndOfBlock = 0x00, kSixteenZeros = 0xF0;
constexpr int kLongestEobRun = 0x7FFF;  // blocks that one end-of-band symbol may cover (G.1.2.2)
constexpr int kMaxWaitingBits = 937;    // libjpeg's MAX_CORR_BITS - DCTSIZE2 + 1

int bits_of(uint32_t magnitude) { return 32 - std::countl_zero(magnitude | 1) - (magnitude == 0); }

// Writes symbols as codes.
class CodeSink {
 public:
  using Tables = ScanTables<const HuffmanCodes>;
  using Table = const HuffmanCodes;
  explicit CodeSink(JpegBitWriter& out) : out_(out) {}
  // A symbol and its `count` additional bits, up to 17.
  void symbol(const HuffmanCodes* table, int symbol, uint32_t extra, int count) {
    const HuffmanCodes::Code code = table->code[symbol & 255];
    bad_ |= uint32_t(code.length - 1) | uint32_t(count << 27);  // no code, or above 15 bits
    out_.put(uint64_t{code.bits} << count | extra, code.length + count);
  }
  void bits(uint32_t bits, int count) { out_.put(bits, count); }
  bool good() const { return !(bad_ >> 31); }

 private:
  JpegBitWriter& out_;
  uint32_t bad_ = 0;
};

// Counts symbols.
class CountSink {
 public:
  using Tables = ScanTables<SymbolCounts>;
  using Table = SymbolCounts;
  void symbol(SymbolCounts* table, int symbol, uint32_t, int count) {
    ++(*table)[symbol & 255];
    bad_ |= count > 15;
  }
  void bits(uint32_t, int) {}
  bool good() const { return !bad_; }

 private:
  bool bad_ = false;
};

template <class Sink>
class ScanCoder {
 public:
  ScanCoder(const JpegScan& scan, const typename Sink::Tables& tables, const ScanChoices& choices,
            Sink& sink)
      : scan_(scan),
        tables_(tables),
        choices_(choices),
        sink_(sink),
        band_((~uint64_t{0} << scan.first) & (~uint64_t{0} >> (63 - scan.last))) {}

  void sequential(int i, const int16_t* block) {
    difference(i, block[0]);
    typename Sink::Table* const table = tables_.ac[i];
    int before = 0;
    for (uint64_t left = zigzag_mask(block) & ~uint64_t{1}; left; left &= left - 1) {
      const int k = std::countr_zero(left);
      number(table, after_zeros(table, k - before - 1), block[kNaturalFromZigzag[k]]);
      before = k;
    }
    if (before != 63) sink_.symbol(table, kEndOfBlock, 0, 0);
  }

  void dc_first(int i, const int16_t* block) { difference(i, block[0] >> scan_.low); }
  void dc_refine(const int16_t* block) { sink_.bits((block[0] >> scan_.low) & 1, 1); }

  void ac_first(const int16_t* block) {
    break_run_here();
    typename Sink::Table* const table = tables_.ac[0];
    int before = scan_.first - 1;
    for (uint64_t left = zigzag_mask(block) & band_; left; left &= left - 1) {
      const int k = std::countr_zero(left);
      const int value = block[kNaturalFromZigzag[k]];
      const int shown = value < 0 ? -(-value >> scan_.low) : value >> scan_.low;
      if (shown == 0) continue;
      end_run();
      number(table, after_zeros(table, k - before - 1), shown);
      before = k;
    }
    if (before != scan_.last && ++run_ == kLongestEobRun) end_run();
  }

  void ac_refine(const int16_t* block) {
    break_run_here();
    typename Sink::Table* const table = tables_.ac[0];
    std::array<int, 64> magnitude;
    uint64_t shown = 0;  // the coefficients that are nonzero after this scan
    int last_new = 0;    // the last one that becomes nonzero in this scan
    for (uint64_t left = zigzag_mask(block) & band_; left; left &= left - 1) {
      const int k = std::countr_zero(left);
      magnitude[k] = std::abs(int{block[kNaturalFromZigzag[k]]}) >> scan_.low;
      if (magnitude[k] == 0) continue;
      shown |= uint64_t{1} << k;
      if (magnitude[k] == 1) last_new = k;
    }
    int run = 0, next = scan_.first;
    size_t own = corrections_;  // start of this block's own corrections
    for (; shown; shown &= shown - 1) {
      const int k = std::countr_zero(shown);
      run += k - next;
      next = k + 1;
      for (; run > 15 && k <= last_new; run -= 16) {
        own = end_run_before(own);
        sink_.symbol(table, kSixteenZeros, 0, 0);
        own = send_corrections(own);
      }
      if (magnitude[k] > 1) {
        correction_[corrections_++] = uint8_t(magnitude[k] & 1);
        continue;
      }
      own = end_run_before(own);
      sink_.symbol(table, run << 4 | 1, block[kNaturalFromZigzag[k]] < 0 ? 0 : 1, 1);
      own = send_corrections(own);
      run = 0;
    }
    if (run == 0 && next > scan_.last && corrections_ == own) return;
    ++run_;
    if (run_ == kLongestEobRun || corrections_ > kMaxWaitingBits) end_run();
  }

  // Called before a restart marker, and at the end of the scan.
  void end_interval() {
    end_run();
    predictor_.fill(0);
  }
  bool breaks_used() const { return breaks_ == choices_.run_breaks.size(); }

 private:
  void difference(int i, int value) {
    const int difference = value - predictor_[i];
    predictor_[i] = value;
    number(tables_.dc[i], 0, difference);
  }
  // Writes symbols for long runs; the remainder is the upper half of the next symbol.
  int after_zeros(typename Sink::Table* table, int run) {
    for (; run > 15; run -= 16) sink_.symbol(table, kSixteenZeros, 0, 0);
    return run << 4;
  }
  // F.1.2.1.1: the number of bits of the magnitude, then these bits; for negative values, minus
  // one.
  void number(typename Sink::Table* table, int run, int value) {
    const int sign = value >> 31;
    const int size = bits_of(uint32_t((value ^ sign) - sign));
    const uint32_t extra = uint32_t(value + sign) & ((1u << size) - 1);
    sink_.symbol(table, run + size, extra, size);
  }

  void break_run_here() {
    const std::vector<uint32_t>& breaks = choices_.run_breaks;
    if (breaks_ < breaks.size() && breaks[breaks_] == block_) {
      end_run();
      ++breaks_;
    }
    ++block_;
  }
  // Writes the pending end-of-band run of the previous blocks, then their corrections.
  void end_run() {
    if (run_ == 0) return;
    const int size = bits_of(uint32_t(run_)) - 1;
    sink_.symbol(tables_.ac[0], size << 4, uint32_t(run_) & ((1u << size) - 1), size);
    run_ = 0;
    send(0, corrections_);
    corrections_ = 0;
  }
  // The same if the current block has corrections of its own after theirs, starting at `own`.
  size_t end_run_before(size_t own) {
    if (run_ == 0) return own;
    const size_t kept = corrections_ - own;
    const size_t all = corrections_;
    corrections_ = own;
    end_run();
    for (size_t i = own; i < all; ++i) correction_[i - own] = correction_[i];
    corrections_ = kept;
    return 0;
  }
  size_t send_corrections(size_t own) {
    send(own, corrections_);
    corrections_ = own;
    return own;
  }
  void send(size_t first, size_t end) {
    for (size_t i = first; i < end; ++i) sink_.bits(correction_[i], 1);
  }

  const JpegScan& scan_;
  const typename Sink::Tables& tables_;
  const ScanChoices& choices_;
  Sink& sink_;
  const uint64_t band_;  // the scan's coefficients
  std::array<int, 4> predictor_{};
  int run_ = 0;
  uint32_t block_ = 0;
  size_t breaks_ = 0;
  std::array<uint8_t, 1024> correction_;
  size_t corrections_ = 0;
};

template <class Sink, class EndInterval>
bool code_scan(const JpegFrame& frame, const JpegScan& scan, StoredBlocks& blocks,
               const typename Sink::Tables& tables, const ScanChoices& choices, Sink& sink,
               EndInterval&& end_interval) {
  ScanCoder<Sink> coder(scan, tables, choices, sink);
  const auto restart = [&] {
    coder.end_interval();
    return end_interval(false);
  };
  const auto walk = [&](auto&& per_block) {
    return walk_scan(frame, scan, blocks, per_block, restart, [&] { return sink.good(); });
  };
  bool whole = false;
  if (!scan.progressive) {
    whole = walk([&](int i, const int16_t* block) { coder.sequential(i, block); });
  } else if (scan.first == 0 && scan.high == 0) {
    whole = walk([&](int i, const int16_t* block) { coder.dc_first(i, block); });
  } else if (scan.first == 0) {
    whole = walk([&](int, const int16_t* block) { coder.dc_refine(block); });
  } else if (scan.high == 0) {
    whole = walk([&](int, const int16_t* block) { coder.ac_first(block); });
  } else {
    whole = walk([&](int, const int16_t* block) { coder.ac_refine(block); });
  }
  if (!whole) return false;
  coder.end_interval();
  return end_interval(true) && coder.breaks_used();
}

// Every table used by the scan's symbols must exist.
template <class Table>
bool has_tables(const JpegScan& scan, const ScanTables<Table>& tables) {
  const bool dc = scan.first == 0 && scan.high == 0, ac = !scan.progressive || scan.first > 0;
  for (int i = 0; i < scan.count; ++i) {
    if ((dc && !tables.dc[i]) || (ac && !tables.ac[i])) return false;
  }
  return true;
}

}  // namespace

bool write_scan(const JpegFrame& frame, const JpegScan& scan, StoredBlocks& blocks,
                const ScanTables<const HuffmanCodes>& tables, const ScanChoices& choices,
                JpegBitWriter& out) {
  if (!has_tables(scan, tables)) return false;
  CodeSink sink(out);
  size_t interval = 0;
  const auto end_interval = [&](bool last) {
    uint8_t padding = choices.padding == ScanChoices::kOnes ? 0xFF : 0;
    if (choices.padding == ScanChoices::kListed) {
      if (interval >= choices.listed.size()) return false;
      padding = choices.listed[interval];
    }
    out.finish(padding);
    if (!last) out.marker(uint8_t(0xD0 + interval % 8));
    ++interval;
    return true;
  };
  const bool whole = code_scan(frame, scan, blocks, tables, choices, sink, end_interval);
  const bool used = choices.padding != ScanChoices::kListed || interval == choices.listed.size();
  return whole && used && sink.good();
}

bool count_scan(const JpegFrame& frame, const JpegScan& scan, StoredBlocks& blocks,
                const ScanTables<SymbolCounts>& counts) {
  if (!has_tables(scan, counts)) return false;
  CountSink sink;
  const ScanChoices usual;
  return code_scan(frame, scan, blocks, counts, usual, sink, [](bool) { return true; }) &&
         sink.good();
}

}  // namespace headrace
