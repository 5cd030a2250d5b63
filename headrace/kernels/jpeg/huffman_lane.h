// SPDX-License-Identifier: Apache-2.0
// Data of a HuffmanLane. Internal to kernels/jpeg/huffman*.
#pragma once

#include <array>
#include <cstdint>

#include "headrace/base/buffer.h"
#include "headrace/kernels/jpeg/huffman_tables.h"

namespace headrace {

// A lane's position; walk() keeps it in registers.
//
// Note [One register for four counters]: the account holds, from the lowest bit up: how many of the
// 63 bits that `bits` may have are missing (6 bits); kRare; in kBlock the current coefficient plus
// one (7 bits, of which the highest, kFull, means that the block is full); and in bits kStepShift
// and above the lane's position in its list of steps, as an address / 8. An entry's lower half has
// the same layout, so one addition updates all counters. DC tables reset the coefficient counter:
// their mask says that its bits are not kept.
struct HuffmanCursor {
  static constexpr uint64_t kBlock = 0x7f00, kFull = 0x4000;
  static constexpr int kStepShift = 15;

  uint64_t bits = 0;  // the next bits of the stream, from the highest bit down
  uint64_t account = 0;
  uintptr_t table = 0;            // walking address of the current step's table
  const uint8_t* next = nullptr;  // the byte after those in `bits`

  const uintptr_t* step() const {
    return reinterpret_cast<const uintptr_t*>(account >> kStepShift << 3);
  }
  // Number of valid bits in `bits`; the bits below may already hold the next ones, but do not
  // count.
  unsigned valid() const { return 63 - (account & 63); }
};

struct HuffmanStream {
  HuffmanCursor cursor;
  uint64_t* note = nullptr;  // the next one
  const uint8_t* start = nullptr;
  const uint8_t* end = nullptr;
  HuffmanLane::State state = HuffmanLane::State::kDone;
};

struct HuffmanLane::Notes : HuffmanStream {
  static constexpr size_t kMaxNotes = 64;  // per block: each except one advances the coefficient
  static constexpr size_t kReadAhead = 8;

  void plan(int run);
  uint64_t* first_note() { return reinterpret_cast<uint64_t*>(notes.data()); }
  uintptr_t* first_step() { return reinterpret_cast<uintptr_t*>(steps.data()); }

  McuPattern pattern;
  std::array<uintptr_t, 20> tables{};  // walking addresses by block of the MCU, DC and AC
  bool beyond = false;                 // opened past the end
  int mcus = -1;                       // in `steps`
  size_t room = 0;                     // in blocks
  // Walking addresses in the order in which a run uses the tables, two per block, then the one that
  // ends the run.
  Buffer steps;
  Buffer notes;
  Buffer dc;  // DC notes, one per block
};

}  // namespace headrace
