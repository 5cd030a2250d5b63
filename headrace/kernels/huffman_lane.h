// SPDX-License-Identifier: Apache-2.0
// What a HuffmanLane holds. Internal to
// kernels/huffman*.
#pragma once

#include <array>
#include <cstdint>

#include "headrace/base/buffer.h"
#include "headrace/kernels/huffman_tables.h"

namespace headrace {

// Where a lane stands; walk() keeps these in registers.
struct HuffmanCursor {
  static constexpr uint64_t kFullBlock = 62 << 8, kOver = 0x8000;

  uint64_t bits = 0;              // the next bits of the stream, from the top
  uint64_t budget = 0;            // Note [One register for three counters]
  const uint8_t* next = nullptr;  // the byte behind those in `bits`
  uint64_t* note = nullptr;
  const HuffmanTable::Tables* const* step = nullptr;
};

struct HuffmanStream {
  HuffmanCursor cursor;
  const uint8_t* start = nullptr;
  const uint8_t* end = nullptr;
  HuffmanLane::State state = HuffmanLane::State::kDone;
};

struct HuffmanLane::Notes : HuffmanStream {
  static constexpr size_t kMostNotes = 64;  // of a block: all but one advance
  static constexpr size_t kReadAhead = 8;

  void plan(int run);
  uint64_t* first_note() { return reinterpret_cast<uint64_t*>(notes.data()); }
  const HuffmanTable::Tables** first_step() {
    return reinterpret_cast<const HuffmanTable::Tables**>(steps.data());
  }

  McuPattern pattern;
  std::array<const HuffmanTable::Tables*, 10> dc_tables{}, ac_tables{};  // by block of the MCU
  bool beyond = false;                                                   // opened behind the end
  int mcus = -1;                                                         // that `steps` lists
  size_t room = 0;                                                       // in blocks
  // Tables in the order in which a run uses them, two a block, then the one that ends the run.
  Buffer steps;
  Buffer notes;
  Buffer dc;  // notes of DC differences, one a block
};

}  // namespace headrace
