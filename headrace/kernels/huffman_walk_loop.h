// SPDX-License-Identifier: Apache-2.0
// The loop of walk(), to be included into one file for each instruction set, between its target
// pragmas: everything is internal to that file.
//
// Note [One register for three counters]: HuffmanCursor::budget holds, from below, the number of
// valid bits in `bits` (6 bits), the flags kRare and kEnd, and in bits 8-15 how many coefficients
// the block may still advance, less one. An entry has the same layout, so one subtraction accounts
// for all of it, and sets the flags, which were clear, by borrowing; what happens above does not
// matter. A block that is full shows as a negative number, kOver.
//
// Note [Reads are counted, not checked]: a round takes at most 14 bytes from each stream. From the
// smallest number of bytes that a lane has left (with the padding) follows a number of rounds that
// need no check.

namespace headrace {
namespace {

using namespace huffman;
using State = HuffmanLane::State;
using Tables = HuffmanTable::Tables;

constexpr uint64_t kOver = HuffmanCursor::kOver, kFullBlock = HuffmanCursor::kFullBlock;
constexpr uint64_t kUpperHalf = 0xffffffff00000000;

inline __attribute__((always_inline)) uint64_t big_endian_at(const uint8_t* from) {
  uint64_t value;
  __builtin_memcpy(&value, from, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  value = __builtin_bswap64(value);
#endif
  return value;
}

// 56 to 63 valid bits.
inline __attribute__((always_inline)) void refill(HuffmanCursor& c) {
  c.bits |= big_endian_at(c.next) >> (c.budget & 63);
  c.next += (~c.budget & 56) >> 3;
  c.budget |= 56;
}

inline __attribute__((always_inline)) void take(HuffmanCursor& c, uint32_t entry) {
  *c.note++ = (c.bits & kUpperHalf) | entry;
  c.bits <<= entry & 63;
  c.budget -= entry;
}

inline void next_step(HuffmanCursor& c) {
  c.budget = (c.budget & 63) | kFullBlock;
  ++c.step;
}

// Of the coefficients that may follow, after an entry.
inline int left_of(uint64_t budget) { return static_cast<int8_t>(budget >> 8); }

State settle_not_found(HuffmanCursor& c) {
  --c.note;
  c.budget += kRare;
  const Tables& tables = **c.step;
  if (tables.end_of_run) return State::kDone;
  refill(c);
  const uint32_t entry = tables.find(static_cast<uint32_t>(c.bits >> 48));
  if (entry == 0) return State::kSuspicious;
  take(c, entry);
  if (c.budget & kEnd) {
    next_step(c);
  } else if (c.budget & kOver) {
    if (left_of(c.budget) < -1) return State::kSuspicious;
    next_step(c);
  }
  return State::kRunning;
}

// Turns the stream back by so many bits.
void give_back(HuffmanCursor& c, unsigned bits) {
  const unsigned unread = (c.budget & 63) + bits, bytes = (unread + 7) / 8;
  c.next -= bytes;
  c.bits = c.budget = 0;
  refill(c);
  c.bits <<= bytes * 8 - unread;
  c.budget -= bytes * 8 - unread;
}

// Coefficient 63 was reached, or passed.
State settle_full_block(HuffmanCursor& c) {
  const uint32_t entry = static_cast<uint32_t>(c.note[-1]);
  const int left = left_of(c.budget + entry);  // before the entry
  const int first = static_cast<int>(first_advance_of(entry));
  if (first > left) {  // the first of two symbols filled the block: the second belongs to the next
    if (first - left > 1) return State::kSuspicious;
    give_back(c, bits_of(entry) - first_bits_of(entry));
    c.note[-1] = (c.note[-1] & kUpperHalf) | only_first(entry);
  } else if (!(entry & kEnd) && static_cast<int>(advance_of(entry)) - left > 1) {
    return State::kSuspicious;
  }
  next_step(c);
  return State::kRunning;
}

[[gnu::noinline]] State settle(HuffmanCursor& c) {
  const bool found = !(static_cast<uint32_t>(c.note[-1]) & kRare);
  return found ? settle_full_block(c) : settle_not_found(c);
}

// True for what settle() is for.
template <bool kBranchFree>
inline __attribute__((always_inline)) bool step(HuffmanCursor& c) {
  const uint32_t entry = (*c.step)->entries[c.bits >> (64 - kLookupBits)];
  take(c, entry);
  if (__builtin_expect((c.budget & (kOver | kRare)) != 0, 0)) return true;
  if constexpr (kBranchFree) {
    const uint64_t ended = c.budget & kEnd, fresh = (c.budget & 63) | kFullBlock;
    c.step = reinterpret_cast<const Tables* const*>(reinterpret_cast<const char*>(c.step) +
                                                    ended / (kEnd / sizeof(*c.step)));
    c.budget = ended ? fresh : c.budget;
  } else {
    if (c.budget & kEnd) next_step(c);
  }
  return false;
}

// Rounds that may follow unchecked; 0 when the lane went beyond its end.
inline int64_t rounds_of(const HuffmanCursor& c, const uint8_t* end) {
  // Behind end + 8, bits that are not there were used: at most 63 are left.
  return c.next > end + 8 ? 0 : (end + (kStreamPadding - 8) - c.next) / 14;
}

template <int kLanes>
int walk_lanes(HuffmanStream* const* lanes) {
  constexpr bool kBranchFree = kLanes > 2;
  HuffmanCursor a = lanes[0]->cursor, b, c, d;
  if constexpr (kLanes > 1) b = lanes[1]->cursor;
  if constexpr (kLanes > 2) c = lanes[2]->cursor;
  if constexpr (kLanes > 3) d = lanes[3]->cursor;
  State state = State::kRunning;
  int stopped = 0;

  const auto is_unusual = [&](HuffmanCursor& cursor, int lane) {
    if (!step<kBranchFree>(cursor)) return false;
    HuffmanCursor copy = cursor;  // the cursor itself has no address, so it stays in registers
    state = settle(copy);
    cursor = copy;
    stopped = lane;
    return true;
  };
  const auto step_all = [&] {
    if (is_unusual(a, 0)) return false;
    if constexpr (kLanes > 1) {
      if (is_unusual(b, 1)) return false;
    }
    if constexpr (kLanes > 2) {
      if (is_unusual(c, 2)) return false;
    }
    if constexpr (kLanes > 3) {
      if (is_unusual(d, 3)) return false;
    }
    return true;
  };
  const auto safe_rounds = [&] {
    int64_t rounds = INT64_MAX;
    const auto limit = [&](const HuffmanCursor& cursor, int lane) {
      const int64_t more = rounds_of(cursor, lanes[lane]->end);
      if (more < rounds) rounds = more, stopped = lane;
    };
    limit(a, 0);
    if constexpr (kLanes > 1) limit(b, 1);
    if constexpr (kLanes > 2) limit(c, 2);
    if constexpr (kLanes > 3) limit(d, 3);
    return rounds;
  };

  while (state == State::kRunning) {
    int64_t rounds = safe_rounds();
    if (rounds == 0) state = State::kSuspicious;
    for (; rounds > 0; --rounds) {
      refill(a);
      if constexpr (kLanes > 1) refill(b);
      if constexpr (kLanes > 2) refill(c);
      if constexpr (kLanes > 3) refill(d);
      if ((!step_all() || !step_all()) && state != State::kRunning) break;
    }
  }
  lanes[0]->cursor = a;
  if constexpr (kLanes > 1) lanes[1]->cursor = b;
  if constexpr (kLanes > 2) lanes[2]->cursor = c;
  if constexpr (kLanes > 3) lanes[3]->cursor = d;
  lanes[stopped]->state = state;
  return stopped;
}

int walk_any(HuffmanStream* const* lanes, int count) {
  switch (count) {
    case 1:
      return walk_lanes<1>(lanes);
    case 2:
      return walk_lanes<2>(lanes);
    case 3:
      return walk_lanes<3>(lanes);
    default:
      return walk_lanes<4>(lanes);
  }
}

}  // namespace
}  // namespace headrace
