// SPDX-License-Identifier: Apache-2.0
// The loop of walk(), included by one file per instruction set, between its target pragmas.
// Everything here is internal to the including file.
//
// Note [Reads are counted, not checked]: a round takes less than 8 bytes from each stream. So the
// smallest number of bytes that any lane has left, including padding, determines how many rounds
// need no checks.

namespace headrace {
namespace {

using namespace huffman;
using State = HuffmanLane::State;
using Tables = HuffmanTable::Tables;

inline __attribute__((always_inline)) uint64_t big_endian_at(const uint8_t* from) {
  uint64_t value;
  __builtin_memcpy(&value, from, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  value = __builtin_bswap64(value);
#endif
  return value;
}

// Refills to 56 to 63 bits. Bits that are already present are ORed in again, without effect.
inline __attribute__((always_inline)) void refill(HuffmanCursor& c) {
  c.bits |= big_endian_at(c.next) >> (~c.account & 63);
  c.next += c.account >> 3 & 7;
  c.account &= ~uint64_t{56};
}

inline __attribute__((always_inline)) void take(HuffmanCursor& c, uint32_t entry, uint64_t* note) {
  *note = c.bits;
  __builtin_memcpy(note, &entry, sizeof(entry));
  c.bits <<= entry & 63;
  c.account += entry & kAccounted;
}

// Called after the last coefficient of a block: false if it was one too many.
bool end_full_block(HuffmanCursor& c) {
  constexpr uint64_t kReached63 = 64 << 8;
  if ((c.account & HuffmanCursor::kBlock) != kReached63) return false;
  c.account += kEnd - kReached63;
  return true;
}

State take_rare_code(HuffmanCursor& c, uint64_t* note) {
  c.account -= kRare;
  const Tables& tables = Tables::at(c.table);
  if (tables.end_of_run) return State::kDone;
  refill(c);
  const uint32_t entry = tables.find(static_cast<uint32_t>(c.bits >> 48));
  if (entry == 0) return State::kSuspicious;
  take(c, entry, note);
  if (c.account & HuffmanCursor::kFull && !end_full_block(c)) return State::kSuspicious;
  return State::kRunning;
}

// Called after the account was rolled back.
void read_again(HuffmanCursor& c) {
  const unsigned bytes = (c.valid() + 7) / 8, used = bytes * 8 - c.valid();
  c.next -= bytes;
  c.bits = big_endian_at(c.next) << used;
  c.next += 7;
  c.account = (c.account & ~uint64_t{63}) | (7 + used);
}

// Called when coefficient 63 was reached or passed.
State take_full_block(HuffmanCursor& c, uint64_t* note) {
  const auto entry = static_cast<uint32_t>(*note);
  if (const uint32_t first = only_first(entry)) {
    HuffmanCursor before = c;
    before.account -= entry & kAccounted;
    before.account += first & kAccounted;
    if (before.account & HuffmanCursor::kFull) {  // the second symbol belongs to the next block
      c = before;
      read_again(c);
      __builtin_memcpy(note, &first, sizeof(first));
    }
  }
  return end_full_block(c) ? State::kRunning : State::kSuspicious;
}

[[gnu::noinline]] State settle(HuffmanCursor& c, uint64_t* note) {
  const State state = c.account & kRare ? take_rare_code(c, note) : take_full_block(c, note);
  refill(c);
  c.table = *c.step();
  return state;
}

// Rounds that can follow without checks; 0 if the lane went past its end.
inline int64_t rounds_of(const uint8_t* next, const uint8_t* end) {
  // Past end + 8, bits that do not exist were consumed; at most 63 are left.
  return next > end + 8 ? 0 : (end + (kStreamPadding - 24) - next) / 12;
}

// State that changes at every step, kept apart from state that changes once per round.
struct Registers {
  uint64_t bits, account;
  uintptr_t table;
};

template <int kLanes>
int walk_lanes(HuffmanStream* const* lanes) {
  Registers a, b, c, d;
  const uint8_t* next[kLanes];
  uint64_t* notes[kLanes];
  const auto load = [&](Registers& r, int lane) {
    const HuffmanCursor& cursor = lanes[lane]->cursor;
    r = {cursor.bits, cursor.account, cursor.table};
    next[lane] = cursor.next;
    notes[lane] = lanes[lane]->note;
  };
  load(a, 0);
  if constexpr (kLanes > 1) load(b, 1);
  if constexpr (kLanes > 2) load(c, 2);
  if constexpr (kLanes > 3) load(d, 3);
  State state = State::kRunning;
  int stopped = 0;
  size_t steps = 0;  // of all lanes
  int ahead = 0;     // number of lanes that took one more step

  const auto fill = [&](Registers& r, int lane) __attribute__((always_inline)) {
    const uint8_t* const from = next[lane];
    r.bits |= big_endian_at(from) >> (~r.account & 63);
    next[lane] = from + (r.account >> 3 & 7);
    r.account &= ~uint64_t{56};
  };
  const auto step = [&](Registers& r, int lane) __attribute__((always_inline)) {
    const uintptr_t table = r.table;
    const uintptr_t next_table =
        reinterpret_cast<const uintptr_t*>(r.account >> HuffmanCursor::kStepShift << 3)[1];
    uint32_t entry;
    __builtin_memcpy(&entry,
                     static_cast<const char*>(Tables::entries_at(table)) +
                         (r.bits >> (table & 63)) * sizeof(entry),
                     sizeof(entry));
    uint64_t kept;
    __builtin_memcpy(&kept, Tables::kept_at(table), sizeof(kept));
    uint64_t* const note = notes[lane] + steps;
    *note = r.bits;
    __builtin_memcpy(note, &entry, sizeof(entry));
    r.bits <<= entry & 63;
    r.account &= kept;
    r.account += entry & kAccounted;
    r.table = HEADRACE_UNPREDICTABLE((entry & kEnd) != 0) ? next_table : table;
    if (__builtin_expect((r.account & (HuffmanCursor::kFull | kRare)) == 0, 1)) return true;
    HuffmanCursor cursor{r.bits, r.account, r.table, next[lane]};
    cursor.table = table;
    state = settle(cursor, note);
    r = {cursor.bits, cursor.account, cursor.table};
    next[lane] = cursor.next;
    if (state == State::kRunning) return true;
    stopped = ahead = lane;
    return false;
  };
  const auto step_all = [&]() __attribute__((always_inline)) {
    if (!step(a, 0)) return false;
    if constexpr (kLanes > 1) {
      if (!step(b, 1)) return false;
    }
    if constexpr (kLanes > 2) {
      if (!step(c, 2)) return false;
    }
    if constexpr (kLanes > 3) {
      if (!step(d, 3)) return false;
    }
    ++steps;
    return true;
  };

  while (state == State::kRunning) {
    int64_t rounds = INT64_MAX;
    for (int lane = 0; lane < kLanes; ++lane) {
      const int64_t more = rounds_of(next[lane], lanes[lane]->end);
      if (more < rounds) rounds = more, stopped = lane;
    }
    if (rounds == 0) state = State::kSuspicious;
    for (; rounds > 0; --rounds) {
      // Keeps these in memory: the registers are needed for the steps' dependency chain.
      __asm__("" : "+m"(next), "+m"(notes));
      fill(a, 0);
      if constexpr (kLanes > 1) fill(b, 1);
      if constexpr (kLanes > 2) fill(c, 2);
      if constexpr (kLanes > 3) fill(d, 3);
      if (!step_all() || !step_all() || !step_all()) break;
    }
  }
  const auto store = [&](const Registers& r, int lane) {
    lanes[lane]->cursor = {r.bits, r.account, r.table, next[lane]};
    lanes[lane]->note = notes[lane] + steps + (lane < ahead ? 1 : 0);
  };
  store(a, 0);
  if constexpr (kLanes > 1) store(b, 1);
  if constexpr (kLanes > 2) store(c, 2);
  if constexpr (kLanes > 3) store(d, 3);
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
