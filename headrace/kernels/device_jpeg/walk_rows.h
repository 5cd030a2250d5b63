// SPDX-License-Identifier: Apache-2.0
// Huffman decoding: entropy-coded bits -> coefficients, one thread per segment of MCUs. A step
// decodes one symbol, and all segments execute the same instructions for it: a DC difference is
// treated like any coefficient (SumDc adds them up), a bit selects the block's code, and only codes
// of more than nine bits and ends of blocks branch. Segments are decoded in groups, whose threads
// share the tables of their image and clear their own blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/kernels/batch/machine_words.h"
#include "headrace/kernels/device_jpeg/walk_entry.h"

namespace headrace {

// Tables in ordinary memory; walk_rows.cu has the version for shared memory. Both start at a
// multiple of 256 in their address space.
class TablesInMemory {
 public:
  HEADRACE_HD explicit TablesInMemory(const WalkTables& tables)
      : at_(reinterpret_cast<const uint8_t*>(&tables)) {}
  HEADRACE_HD uint32_t begin() const { return 0; }
  // Word `i` of those that begin there.
  HEADRACE_HD uint32_t word(uint32_t address, uint32_t i) const {
    return words::load<1>(at_ + (address + i * 4)).word[0];
  }
  HEADRACE_HD uint32_t byte(uint32_t address) const { return at_[address]; }

 private:
  const uint8_t* at_;
};

template <class Tables>
class RowWalk {
 public:
  // Takes at most 65 steps per block for any input bytes and tables, and never stores outside its
  // blocks or reads outside its words. REQUIRES: the blocks are zero; entries come from
  // WalkEntry::at().
  HEADRACE_HD RowWalk(const Tables& tables, const DeviceImage& image, const RowJob& job,
                      const uint32_t* streams, int16_t* coefficients)
      : tables_(tables),
        stream_(streams + image.first_word + job.begin / 32),
        last_word_(job.end / 32 - job.begin / 32 + RowJob::kPaddingWords),
        at_(job.begin % 32),
        left_(job.mcus * image.blocks),
        top_(1u << (image.blocks - 1)),
        pattern_(image.pattern),
        is_second_(pattern_ & 1),
        place_(tables.begin()),
        coefficients_(coefficients + (image.first_block + job.first_block) * 64),
        furthest_(place_) {
    now_ = words::swapped(next_word());
    next_ = words::swapped(next_word());
    ahead_ = next_word();
    table_ = set_ = set_of_block();
  }

  HEADRACE_HD bool more() const { return left_ > 0; }

  HEADRACE_HD void step() {
    static_assert(offsetof(WalkTables, place) == 0);
    constexpr int kFirstBits = WalkTables::kFirstBits;
    const uint32_t window = words::shifted_in(next_, now_, at_);
    uint32_t entry = tables_.word(table_, window >> (32 - kFirstBits));
    if (entry & WalkEntry::kSecond) {
      entry = tables_.word(table_ + static_cast<uint32_t>(static_cast<int32_t>(entry) >> 8),
                           window >> (entry & 31));
    }
    at_ += entry & 127;
    place_ += words::byte_of(entry, 2);
    // F.2.2.1, EXTEND: the field's highest bit says whether it is the value itself, or the bitwise
    // complement of the value's absolute value.
    const uint32_t field = words::shifted_in(0, window, entry >> 24);
    const uint32_t above = static_cast<uint32_t>(static_cast<int32_t>(field) >> 31);
    const uint32_t bits = words::same_bits(field, above) >> (entry >> 8 & 31);
    words::store_unless(entry & WalkEntry::kNoValue, coefficients_, out_ + tables_.byte(place_),
                        static_cast<uint16_t>(words::same_bits(bits, above) + above + 1));
    if (at_ >= 32) {
      at_ -= 32;
      now_ = next_;
      next_ = words::swapped(ahead_);
      ahead_ = next_word();
    }
    const bool ends = static_cast<int32_t>(entry) < 0 || (place_ & 192) != 0;
    if (ends) {
      furthest_ = furthest_ > place_ ? furthest_ : place_;
      place_ = tables_.begin();
      out_ += 64;
      --left_;
      pattern_ = (pattern_ >> 1) + is_second_ * top_;
      is_second_ = pattern_ & 1;
      set_ = set_of_block();
    }
    table_ = set_ + (ends ? 0 : 2 * WalkTables::kTableBytes);
  }

  // Whether everything decoded is valid encoder output and ends at the expected bit.
  HEADRACE_HD bool is_whole(const RowJob& job) const {
    const uint32_t end = job.begin / 32 * 32 + position();
    return furthest_ <= tables_.begin() + 64 && end <= job.end && job.end - end <= job.slack;
  }

  HEADRACE_HD int32_t left() const { return left_; }
  // Bits starting at the first word of the segment.
  HEADRACE_HD uint32_t position() const { return (word_ - 3) * 32 + at_; }

 private:
  HEADRACE_HD uint32_t next_word() {
    const uint32_t word = stream_[word_ < last_word_ ? word_ : last_word_];
    ++word_;
    return word;
  }
  HEADRACE_HD uint32_t set_of_block() const {
    return tables_.begin() + static_cast<uint32_t>(sizeof(WalkTables::place)) +
           is_second_ * WalkTables::kTableBytes;
  }

  Tables tables_;
  const uint32_t* stream_;
  uint32_t word_ = 0, last_word_;
  uint32_t now_, next_, ahead_;  // the current 64 bits and the next ones, in memory order
  uint32_t at_;                  // position in the 64 bits, below 32
  int32_t left_;                 // blocks still to decode
  uint32_t top_, pattern_;       // the pattern's highest bit; the pattern, whose lowest bit is the
                                 // current block's
  uint32_t is_second_;           // that bit
  // Addresses: in WalkTables::place, of the coefficient after the block's last; of the tables of
  // the block's set; of the table for the next symbol.
  uint32_t place_, set_, table_;
  int16_t* coefficients_;
  uint32_t out_ = 0;   // of the coefficients where the block begins
  uint32_t furthest_;  // of place_
};

struct WalkRows {
  const DeviceImage* images = nullptr;
  const WalkGroup* groups = nullptr;
  const RowJob* jobs = nullptr;
  const WalkTables* tables = nullptr;
  const uint32_t* streams = nullptr;
  int16_t* coefficients = nullptr;
  uint8_t* refused = nullptr;  // one error flag per image
  int64_t group_count = 0;

  HEADRACE_HD int64_t items() const { return group_count * WalkGroup::kMax; }

  HEADRACE_HD void operator()(int64_t item) const {
    const WalkGroup& group = groups[item / WalkGroup::kMax];
    const auto number = static_cast<uint32_t>(item % WalkGroup::kMax);
    if (number >= group.jobs) return;
    const RowJob& job = jobs[group.first_job + number];
    const DeviceImage& image = images[group.image];
    clear(blocks_of(image), job.first_block, pieces(image, job), 0, 1);
    walk(TablesInMemory(tables[group.image]), group.image, job);
  }

  HEADRACE_HD int16_t* blocks_of(const DeviceImage& image) const {
    return coefficients + image.first_block * 64;
  }
  // A segment's blocks, in pieces of 16 bytes.
  HEADRACE_HD static int32_t pieces(const DeviceImage& image, const RowJob& job) {
    return job.mcus * image.blocks * 8;
  }
  // One of `lanes` threads that together clear `count` pieces, starting at block `first`.
  HEADRACE_HD static void clear(int16_t* blocks, uint32_t first, int32_t count, int32_t lane,
                                int32_t lanes) {
    int16_t* at = blocks + int64_t{first} * 64 + lane * 8;
    HEADRACE_ROLLED
    for (int32_t left = count - lane; left > 0; left -= lanes, at += lanes * 8) {
      words::store(at, words::Together<4>{});
    }
  }

  template <class Tables>
  HEADRACE_HD void walk(const Tables& from, uint32_t image, const RowJob& job) const {
    RowWalk<Tables> row(from, images[image], job, streams, coefficients);
    HEADRACE_ROLLED
    while (row.more()) row.step();
    if (!row.is_whole(job)) words::raise(refused + image);
  }
};

}  // namespace headrace
