// SPDX-License-Identifier: Apache-2.0
// The walk: entropy-coded bits -> coefficients, a thread a stretch of MCUs. A step is one symbol,
// and all stretches take the same instructions for it: a DC difference is a coefficient like any
// other (SumDc adds them up), a bit tells which code a block has, and only codes of more than nine
// bits and ends of blocks branch.
#pragma once

#include <cstdint>

#include "headrace/kernels/batch/machine_words.h"
#include "headrace/kernels/device_jpeg/walk_entry.h"

namespace headrace {

// Tables that lie in memory as any other; walk_rows.cu has those in shared memory.
class TablesInMemory {
 public:
  HEADRACE_HD explicit TablesInMemory(const WalkTables& tables)
      : at_(reinterpret_cast<const uint8_t*>(&tables)) {}
  HEADRACE_HD uint32_t word(uint32_t byte) const { return words::load<1>(at_ + byte).word[0]; }
  HEADRACE_HD uint32_t place(uint32_t k) const { return at_[sizeof(WalkTables::entries) + k]; }

 private:
  const uint8_t* at_;
};

template <class Tables>
class RowWalk {
 public:
  // Ends within 65 steps a block, whatever bytes and tables are, having stored nothing outside of
  // its blocks and read nothing outside of its words.
  // REQUIRES: the blocks are zero; job.words > 0; entries are those of WalkEntry::at().
  HEADRACE_HD RowWalk(const Tables& tables, const DevicePicture& picture, const RowJob& job,
                      const uint32_t* streams, int16_t* coefficients)
      : tables_(tables),
        stream_(streams + job.word),
        last_word_(job.words - 1),
        at_(job.bit),
        left_(static_cast<int32_t>(job.mcus) * picture.blocks),
        top_(static_cast<uint32_t>(picture.blocks) - 1),
        pattern_(picture.pattern),
        out_(coefficients + job.first_block * 64) {
    now_ = words::swapped(next_word());
    next_ = words::swapped(next_word());
    ahead_ = next_word();
    table_ = set_ = (pattern_ & 1) * WalkTables::kTableBytes;
  }

  HEADRACE_HD bool more() const { return left_ > 0; }

  HEADRACE_HD void step() {
    constexpr int kFirstBits = WalkTables::kFirstBits;
    const uint32_t window = words::shifted_in(next_, now_, at_);
    uint32_t entry = tables_.word(table_ + (window >> (30 - kFirstBits) & ~3u));
    if (entry & WalkEntry::kSecond) {
      const uint32_t index = window << kFirstBits >> words::byte_of(entry, 2);
      entry = tables_.word(table_ + (entry & 0xffff) + index * 4);
    }
    const uint32_t size = words::byte_of(entry, 1);
    // F.2.2.1, EXTEND: the field's highest bit says whether it is the value, or that less 2^size-1.
    const uint32_t field = words::shifted_in(0, window, entry >> 24);
    const uint32_t low = ~static_cast<uint32_t>(static_cast<int32_t>(field) >> 31);
    const uint32_t value = (field >> ((32 - size) & 31)) + (low << size) - low;
    at_ += words::byte_of(entry, 0);
    k_ += words::byte_of(entry, 2);
    if (at_ >= 32) {
      at_ -= 32;
      now_ = next_;
      next_ = words::swapped(ahead_);
      ahead_ = next_word();
    }
    if (size) out_[tables_.place(k_)] = static_cast<int16_t>(static_cast<uint16_t>(value));
    const bool ends = static_cast<int32_t>(entry) < 0 || k_ >= 64;
    if (ends) {
      furthest_ = furthest_ > k_ ? furthest_ : k_;
      k_ = 0;
      out_ += 64;
      --left_;
      pattern_ = pattern_ >> 1 | (pattern_ & 1) << top_;
      set_ = (pattern_ & 1) * WalkTables::kTableBytes;
    }
    table_ = set_ + (ends ? 0 : 2 * WalkTables::kTableBytes);
  }

  // Whether all that was walked is what an encoder writes, and ends where it should.
  HEADRACE_HD bool is_whole(const RowJob& job) const {
    const uint32_t end = (word_ - 3) * 32 + at_;
    return furthest_ <= 64 && end >= job.least && end <= job.most;
  }

  HEADRACE_HD uint32_t word_number() const { return word_; }
  HEADRACE_HD int32_t left() const { return left_; }

 private:
  HEADRACE_HD uint32_t next_word() {
    const uint32_t word = stream_[word_ < last_word_ ? word_ : last_word_];
    ++word_;
    return word;
  }

  Tables tables_;
  const uint32_t* stream_;
  uint32_t word_ = 0, last_word_;
  uint32_t now_, next_, ahead_;  // the 64 bits under way, and those behind, as they lie in memory
  uint32_t at_;                  // of the 64 bits, below 32
  uint32_t k_ = 0;               // of the block, the coefficient after the last
  int32_t left_;                 // blocks
  uint32_t top_, pattern_;
  uint32_t set_, table_;  // bytes: the tables of the block's set, and the one that is next
  int16_t* out_;
  uint32_t furthest_ = 0;  // that a block's coefficients reached
};

struct WalkRows {
  const DevicePicture* pictures = nullptr;
  const RowJob* jobs = nullptr;  // those of a picture stand together
  const WalkTables* tables = nullptr;
  const uint32_t* streams = nullptr;
  int16_t* coefficients = nullptr;
  uint8_t* refused = nullptr;  // a flag a picture
  int64_t job_count = 0, picture_count = 0;

  HEADRACE_HD int64_t items() const { return job_count; }

  HEADRACE_HD void operator()(int64_t item) const {
    walk(TablesInMemory(tables[jobs[item].picture]), item);
  }

  template <class Tables>
  HEADRACE_HD void walk(const Tables& from, int64_t item) const {
    const RowJob& job = jobs[item];
    RowWalk<Tables> row(from, pictures[job.picture], job, streams, coefficients);
    HEADRACE_ROLLED
    while (row.more()) row.step();
    if (!row.is_whole(job)) words::raise(refused + job.picture);
  }
};

}  // namespace headrace
