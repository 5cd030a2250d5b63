// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/parts/scan_reader.h"

#include <algorithm>

#include "headrace/codecs/image/jpeg/parts/bit_reader.h"

namespace headrace {
namespace {

constexpr int kLongestRun = 0x7FFF;
constexpr int kMaxWaiting = 937;  // same as in the writer

// F.2.2.1: `size` additional bits as a number.
int extended(uint32_t bits, int size) {
  return bits >> (size - 1) ? int(bits) : int(bits) - (1 << size) + 1;
}

}  // namespace

bool ScanCodes::build(const HuffmanSpec& spec, HuffmanUse use) {
  if (built_ && spec == spec_) return true;
  built_ = false;
  symbol_.fill(0);
  number_.fill(0);
  uint32_t next = 0;
  size_t place = 0;
  for (int length = 1; length <= 16; ++length) {
    offset_[length] = int32_t(place) - int32_t(next);
    for (int i = 0; i < spec.counts[length - 1]; ++i, ++next) {
      if (place == spec.symbols.size()) return false;
      const uint8_t symbol = spec.symbols[place++];
      if (use == HuffmanUse::kDC && symbol > 15) return false;
      if (length > kLookup || next >= (1u << length)) continue;
      const auto first = symbol_.begin() + (next << (kLookup - length));
      std::fill_n(first, 1 << (kLookup - length), uint16_t(length << 8 | symbol));
    }
    if (spec.counts[length - 1] && next >= (1u << length)) return false;
    end_[length] = int32_t(next << (16 - length));
    next <<= 1;
  }
  for (uint32_t bits = 0; bits < symbol_.size(); ++bits) {
    const int length = symbol_[bits] >> 8, run = symbol_[bits] >> 4 & 15, size = symbol_[bits] & 15;
    if (length == 0 || size == 0 || length + size > kLookup) continue;
    const uint32_t extra = bits >> (kLookup - length - size) & ((1u << size) - 1);
    number_[bits] = extended(extra, size) * 65536 + (run << 8 | (length + size));
  }
  spec_ = spec;
  built_ = true;
  return true;
}

// Codes and numbers from bits. Damage is recorded, not returned: zeros follow until the end of the
// block.
class ScanBits {
 public:
  explicit ScanBits(std::span<const uint8_t> bytes) : bits(bytes) {}

  int symbol(const ScanCodes& codes) {
    bits.refill();
    const uint16_t found = codes.symbol_[bits.look(ScanCodes::kLookup)];
    if (found) [[likely]] {
      bits.skip(found >> 8);
      return found & 255;
    }
    const int32_t code = int32_t(bits.look(16));
    for (int length = ScanCodes::kLookup + 1; length <= 16; ++length) {
      if (code < codes.end_[length]) {
        bits.skip(length);
        return codes.spec_.symbols[size_t((code >> (16 - length)) + codes.offset_[length]) & 255];
      }
    }
    damaged = true;
    return 0;
  }
  // A run of zeros and the number after it; number 0 for symbols without a number.
  struct Step {
    int run = 0, number = 0;
  };
  Step step(const ScanCodes& codes) {
    bits.refill();
    const int32_t both = codes.number_[bits.look(ScanCodes::kLookup)];
    if (both) [[likely]] {
      bits.skip(both & 255);
      return {both >> 8 & 15, both >> 16};
    }
    const int found = symbol(codes);
    return {found >> 4, number(found & 15)};
  }
  int number(int size) { return size ? extended(bits.take(size), size) : 0; }

  JpegBitReader bits;
  bool damaged = false;
};

namespace {

int16_t narrowed(int value, bool& damaged) {
  damaged |= value != int16_t(value);
  return int16_t(value);
}

class ScanDecoder {
 public:
  ScanDecoder(const JpegScan& scan, const std::array<ScanCodes, 4>& dc,
              const std::array<ScanCodes, 4>& ac, ScanBits& in, ScanChoices& choices)
      : scan_(scan), dc_(dc), ac_(ac), in_(in), choices_(choices) {}

  void sequential(int i, int16_t* block) {
    block[0] = narrowed(dc_value(i), in_.damaged);
    const ScanCodes& codes = ac_[i];
    for (int k = 1; k < 64; ++k) {
      const ScanBits::Step step = in_.step(codes);
      if (step.number == 0) {
        if (step.run != 15) break;
        k += 15;
        continue;
      }
      k += step.run;
      if (k > 63) {
        in_.damaged = true;
        break;
      }
      block[kNaturalFromZigzag[k]] = narrowed(step.number, in_.damaged);
    }
  }

  void dc_first(int i, int16_t* block) {
    block[0] = narrowed(dc_value(i) * (1 << scan_.low), in_.damaged);
  }
  void dc_refine(int16_t* block) {
    if (in_.bits.take(1)) block[0] = int16_t(block[0] | 1 << scan_.low);
  }

  void ac_first(int16_t* block) {
    const uint32_t ordinal = block_++;
    if (run_ > 0) {
      --run_;
      return note_empty(0);
    }
    const ScanCodes& codes = ac_[0];
    for (int k = scan_.first; k <= scan_.last; ++k) {
      const ScanBits::Step step = in_.step(codes);
      if (step.number == 0) {
        if (step.run == 15) {
          note_symbols();
          k += 15;
          continue;
        }
        begin_run(step.run, k == scan_.first, ordinal);
        return note_empty(0);
      }
      note_symbols();
      k += step.run;
      if (k > scan_.last) {
        in_.damaged = true;
        return;
      }
      block[kNaturalFromZigzag[k]] = narrowed(step.number * (1 << scan_.low), in_.damaged);
    }
  }

  void ac_refine(int16_t* block) {
    const uint32_t ordinal = block_++;
    int k = scan_.first, corrections = 0;
    bool symbols = false;
    while (run_ == 0 && k <= scan_.last) {
      const int symbol = in_.symbol(ac_[0]);
      int zeros = symbol >> 4;
      int16_t fresh = 0;
      if ((symbol & 15) == 0) {
        if (zeros < 15) {
          begin_run(zeros, !symbols, ordinal);
          ++run_;  // this block is one of them
          break;
        }
      } else {
        if ((symbol & 15) != 1) in_.damaged = true;
        fresh = int16_t(in_.bits.take(1) ? 1 << scan_.low : -(1 << scan_.low));
      }
      note_symbols();
      symbols = true;
      for (; k <= scan_.last; ++k) {
        int16_t& value = block[kNaturalFromZigzag[k]];
        if (value != 0) {
          correct(value);
        } else if (zeros-- == 0) {
          value = fresh;
          break;
        }
      }
      if (k > scan_.last) in_.damaged = true;
      ++k;
    }
    if (run_ == 0) return;
    --run_;
    for (; k <= scan_.last; ++k) {
      int16_t& value = block[kNaturalFromZigzag[k]];
      if (value == 0) continue;
      correct(value);
      ++corrections;
    }
    note_empty(corrections);
  }

  // Called before a restart marker and at the scan's end. Returns a reason if the data does not end
  // here.
  std::string_view end_interval() {
    const JpegBitReader::Padding padding = in_.bits.padding();
    if (in_.bits.overrun()) return "truncated";
    if (in_.damaged || run_ > 0) return "damaged scan";
    if (!padding.ends_here) return "bytes after a scan";
    note_padding(padding);
    predictor_.fill(0);
    default_run_ = default_waiting_ = 0;
    return {};
  }

 private:
  int dc_value(int i) {
    // The sum stays far inside an int: a sum beyond 16 bits ends the scan.
    const int value = predictor_[i] + in_.number(in_.symbol(dc_[i]) & 15);
    predictor_[i] = narrowed(value, in_.damaged);
    return value;
  }
  void correct(int16_t& value) {
    if (!in_.bits.take(1)) return;
    const int step = value < 0 ? -(1 << scan_.low) : 1 << scan_.low;
    // A correction of a bit that is already set: libjpeg ignores it, and a writer never produces
    // it.
    if (value & (1 << scan_.low)) in_.damaged = true;
    value = narrowed(value + step, in_.damaged);
  }
  void begin_run(int size, bool first_in_block, uint32_t ordinal) {
    run_ = (1 << size) - 1 + (size ? int(in_.bits.take(size)) : 0);
    // libjpeg's encoder would have continued the previous run.
    if (first_in_block && default_run_ > 0) {
      choices_.run_breaks.push_back(ordinal);
      default_run_ = default_waiting_ = 0;
    }
  }
  // Tracks the end-of-band run that libjpeg's encoder would have pending after this block.
  void note_symbols() { default_run_ = default_waiting_ = 0; }
  void note_empty(int corrections) {
    ++default_run_;
    default_waiting_ += corrections;
    if (default_run_ == kLongestRun || default_waiting_ > kMaxWaiting)
      default_run_ = default_waiting_ = 0;
  }
  void note_padding(const JpegBitReader::Padding& padding) {
    const int ones = (1 << padding.count) - 1;
    choices_.listed.push_back(padding.bits);
    all_ones_ = all_ones_ && padding.bits == ones;
    all_zeros_ = all_zeros_ && padding.bits == 0;
    choices_.padding = all_ones_    ? ScanChoices::kOnes
                       : all_zeros_ ? ScanChoices::kZeros
                                    : ScanChoices::kListed;
  }

  const JpegScan& scan_;
  const std::array<ScanCodes, 4>&dc_, &ac_;
  ScanBits& in_;
  ScanChoices& choices_;
  std::array<int, 4> predictor_{};
  int run_ = 0;  // remaining blocks of the end-of-band run
  uint32_t block_ = 0;
  int default_run_ = 0, default_waiting_ = 0;
  bool all_ones_ = true, all_zeros_ = true;
};

}  // namespace

struct ScanReader::Tables {
  std::array<ScanCodes, 4> dc, ac;
};

ScanReader::ScanReader() : tables_(std::make_unique<Tables>()) {}
ScanReader::~ScanReader() = default;

std::string_view ScanReader::read(const JpegFrame& frame, const JpegScan& scan,
                                  const std::array<const HuffmanSpec*, 4>& dc,
                                  const std::array<const HuffmanSpec*, 4>& ac,
                                  std::span<const uint8_t> bytes,
                                  BlocksOf<CoefficientPlane>& blocks, ScanChoices& choices,
                                  size_t& read) {
  const bool needs_dc = scan.first == 0 && scan.high == 0;
  const bool needs_ac = !scan.progressive || scan.first > 0;
  for (int i = 0; i < scan.count; ++i) {
    if (needs_dc && !(dc[i] && tables_->dc[i].build(*dc[i], HuffmanUse::kDC))) {
      return "damaged tables";
    }
    if (needs_ac && !(ac[i] && tables_->ac[i].build(*ac[i], HuffmanUse::kAC))) {
      return "damaged tables";
    }
  }
  ScanBits in(bytes);
  ScanDecoder decoder(scan, tables_->dc, tables_->ac, in, choices);
  std::string_view reason;
  int next_restart = 0;
  const auto restart = [&] {
    reason = decoder.end_interval();
    if (!reason.empty()) return false;
    if (!in.bits.take_marker(uint8_t(0xD0 + next_restart))) reason = "restart markers";
    next_restart = (next_restart + 1) % 8;
    return reason.empty();
  };
  const auto walk = [&](auto&& decode) {
    return walk_scan(frame, scan, blocks, decode, restart,
                     [&] { return !in.damaged && !in.bits.overrun(); });
  };
  bool whole = false;
  if (!scan.progressive) {
    whole = walk([&](int i, int16_t* block) { decoder.sequential(i, block); });
  } else if (scan.first == 0 && scan.high == 0) {
    whole = walk([&](int i, int16_t* block) { decoder.dc_first(i, block); });
  } else if (scan.first == 0) {
    whole = walk([&](int, int16_t* block) { decoder.dc_refine(block); });
  } else if (scan.high == 0) {
    whole = walk([&](int, int16_t* block) { decoder.ac_first(block); });
  } else {
    whole = walk([&](int, int16_t* block) { decoder.ac_refine(block); });
  }
  if (!whole && !reason.empty()) return reason;
  if (reason = decoder.end_interval(); !reason.empty()) return reason;
  if (choices.padding != ScanChoices::kListed) choices.listed.clear();
  read = in.bits.offset();
  return {};
}

}  // namespace headrace
