// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/jpeg/huffman_lane.h"

#include <algorithm>
#include <cstring>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/jpeg/huffman_levels.h"

namespace headrace {
namespace {

using Tables = HuffmanTable::Tables;

uintptr_t end_of_run() {
  static const Tables tables = [] {
    Tables t;
    t.use = HuffmanUse::kDC;
    t.keep(~uint64_t{0});
    std::fill_n(t.entries(), t.size(), huffman::kRare);
    t.end_of_run = true;
    return t;
  }();
  return tables.walking_address();
}

const HuffmanKernels& kernels() {
  static const ByLevel<const HuffmanKernels*> by_level{
      huffman_kernels_scalar(), huffman_kernels_avx2(), huffman_kernels_avx512()};
  return *by_level.selected();
}

HuffmanWalk walk_of_level() {
  static const ByLevel<HuffmanWalk> by_level{huffman_walk_plain(), huffman_walk_bmi2(),
                                             huffman_walk_bmi2()};
  return by_level.selected();
}

// Adds up the DC differences of `count` skipped MCUs, by block of the MCU.
void add_up(const McuPattern& pattern, const uint64_t* dc, int count,
            std::array<uint32_t, 10>& sums) {
  for (int mcu = 0; mcu < count; ++mcu) {
    for (int i = 0; i < pattern.blocks; ++i) {
      sums[i] += static_cast<uint32_t>(huffman::last_value(*dc++));
    }
  }
}

// Turns the differences of one component's `blocks` per MCU into values, in place, and returns the
// last one. Sums beyond 16 bits wrap, as in libjpeg.
uint32_t sum_up(std::span<const uint8_t> blocks, int per_mcu, int count, uint32_t sum,
                int16_t* out) {
  for (int mcu = 0; mcu < count; ++mcu, out += 64 * per_mcu) {
    for (const uint8_t i : blocks) {
      sum += static_cast<uint32_t>(out[64 * i]);
      out[64 * i] = static_cast<int16_t>(sum);
    }
  }
  return sum;
}

}  // namespace

HuffmanLane::HuffmanLane() : notes_(std::make_unique<Notes>()) {}
HuffmanLane::~HuffmanLane() = default;
HuffmanLane::HuffmanLane(HuffmanLane&&) noexcept = default;
HuffmanLane& HuffmanLane::operator=(HuffmanLane&&) noexcept = default;

void HuffmanLane::open(std::span<const uint8_t> bytes, uint64_t bit, const McuPattern& pattern,
                       const std::array<const HuffmanTable*, 4>& dc,
                       const std::array<const HuffmanTable*, 4>& ac) {
  Notes& n = *notes_;
  n.start = bytes.data();
  n.end = n.start + bytes.size();
  n.beyond = bit > bytes.size() * 8;
  if (n.beyond) bit = 0;
  n.cursor.next = n.start + bit / 8 + 7;
  n.cursor.bits = 0;
  for (int i = 0; i < 7; ++i) n.cursor.bits = n.cursor.bits << 8 | n.start[bit / 8 + i];
  n.cursor.bits <<= 8 + bit % 8;
  n.cursor.account = 7 + bit % 8;
  n.pattern = pattern;
  std::array<uintptr_t, 20> tables{};
  for (int i = 0; i < pattern.blocks; ++i) {
    const int c = pattern.component[i];
    tables[2 * i] = dc[c]->tables().walking_address();
    tables[2 * i + 1] = ac[c]->tables().walking_address();
  }
  if (tables != n.tables) n.mcus = -1;
  n.tables = tables;
  n.state = State::kDone;
}

void HuffmanLane::begin(int mcus) {
  Notes& n = *notes_;
  n.plan(mcus);
  n.note = n.first_note();
  n.cursor.account = (n.cursor.account & 63) | reinterpret_cast<uintptr_t>(n.first_step()) / 8
                                                   << HuffmanCursor::kStepShift;
  n.cursor.table = *n.cursor.step();
  n.state = n.beyond ? State::kSuspicious : State::kRunning;
}

// Prepares steps and memory for a run; reuses the previous run's where possible.
void HuffmanLane::Notes::plan(int run) {
  if (run == mcus) return;
  mcus = -1;  // nothing, if there is no memory for it
  const size_t blocks = static_cast<size_t>(run) * pattern.blocks;
  if (blocks > room || !room) {
    room = 0;
    notes.resize((blocks * kMaxNotes + kReadAhead) * sizeof(uint64_t));
    dc.resize((blocks + kReadAhead) * sizeof(uint64_t));
    steps.resize((blocks * 2 + 2) * sizeof(uintptr_t));
    room = blocks;
  }
  mcus = run;
  uintptr_t* step = first_step();
  for (int mcu = 0; mcu < run; ++mcu) step = std::copy_n(tables.begin(), 2 * pattern.blocks, step);
  step[0] = step[1] = end_of_run();
}

HuffmanLane::State HuffmanLane::state() const { return notes_->state; }

uint64_t HuffmanLane::bit() const {
  const Notes& n = *notes_;
  return static_cast<uint64_t>(n.cursor.next - n.start) * 8 - n.cursor.valid();
}

void HuffmanLane::blocks(int first, int end, const std::array<uint8_t, 64>& position,
                         std::array<int, 4>& predictors, int16_t* out) {
  Notes& n = *notes_;
  const int per_mcu = n.pattern.blocks;
  auto* const dc = reinterpret_cast<uint64_t*>(n.dc.data());
  const HuffmanRun run{n.first_note(), n.note, n.mcus * per_mcu, first * per_mcu, end * per_mcu};
  kernels().blocks(run, position.data(), dc, out);

  std::array<uint32_t, 10> before{}, after{};
  add_up(n.pattern, dc, first, before);
  add_up(n.pattern, dc + static_cast<size_t>(end) * per_mcu, n.mcus - end, after);
  for (uint8_t c = 0; c < predictors.size(); ++c) {
    std::array<uint8_t, 10> of_component;
    size_t count = 0;
    auto sum = static_cast<uint32_t>(predictors[c]);
    uint32_t rest = 0;
    for (uint8_t i = 0; i < per_mcu; ++i) {
      if (n.pattern.component[i] != c) continue;
      of_component[count++] = i;
      sum += before[i];
      rest += after[i];
    }
    if (count == 0) continue;
    sum = rest + sum_up({of_component.data(), count}, per_mcu, end - first, sum, out + position[0]);
    predictors[c] = static_cast<int>(sum);
    if (predictors[c] != static_cast<int16_t>(predictors[c])) n.state = State::kSuspicious;
  }
}

size_t HuffmanLane::held_bytes() const {
  const Notes& n = *notes_;
  return n.notes.capacity() + n.dc.capacity() + n.steps.capacity();
}

int walk(std::span<HuffmanLane* const> lanes) {
  std::array<HuffmanStream*, kMaxLanes> streams;
  for (size_t i = 0; i < lanes.size(); ++i) {
    streams[i] = lanes[i]->notes_.get();
    if (streams[i]->state != HuffmanLane::State::kRunning) return static_cast<int>(i);
  }
  const int stopped = walk_of_level()(streams.data(), static_cast<int>(lanes.size()));
  // Bytes after the end read as zeros, which may form valid symbols.
  const HuffmanLane& lane = *lanes[stopped];
  HuffmanStream& stream = *streams[stopped];
  if (lane.bit() > static_cast<uint64_t>(stream.end - stream.start) * 8) {
    stream.state = HuffmanLane::State::kSuspicious;
  }
  return stopped;
}

}  // namespace headrace
