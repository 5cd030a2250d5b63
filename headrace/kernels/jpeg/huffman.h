// SPDX-License-Identifier: Apache-2.0
// Entropy-coded JPEG data -> quantized coefficients, for several pictures in parallel lanes. Works
// in two phases (docs/internals/jpeg.md): walk() decodes the bits of up to kMaxLanes streams at
// once, with one table lookup for one or two symbols, and records each lookup as a note;
// blocks_of() turns the notes of a run of blocks into coefficients with vectors. A lane belongs to
// one thread.
//
// Anything suspicious (an invalid code, a coefficient beyond the 63rd, the end of the data) stops a
// lane with kSuspicious, and the caller starts over with libjpeg. For any bytes, nothing is read
// outside [bytes, end + kStreamPadding) or written outside the lane's notes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace headrace {

// As stored in DHT: the number of codes of each length 1..16, and the symbols in code order.
struct HuffmanSpec {
  std::array<uint8_t, 16> counts{};
  std::array<uint8_t, 256> symbols{};
  bool operator==(const HuffmanSpec&) const = default;
};

enum class HuffmanUse : uint8_t { kDC, kAC };
// False for a spec that libjpeg rejects: too many codes, an all-ones code, or a DC symbol above 15.
bool is_usable(const HuffmanSpec& spec, HuffmanUse use);

// Lookup tables for one spec. Large (about 10 KB), so they are kept between pictures and shared by
// all users of a thread with the same spec, as is the case for most files of one encoder. So the
// tables of pictures that are decoded in parallel lanes stay in the L1 cache.
class HuffmanTable {
 public:
  HuffmanTable();
  ~HuffmanTable();
  HuffmanTable(HuffmanTable&&) noexcept;
  HuffmanTable& operator=(HuffmanTable&&) noexcept;
  // False for an invalid spec. Cheap if this thread built the same table recently.
  bool build(const HuffmanSpec& spec, HuffmanUse use);

  struct Tables;
  const Tables& tables() const { return *tables_; }

 private:
  std::shared_ptr<const Tables> tables_;  // shared: see above
};

// The blocks of one MCU in order: the component of each.
struct McuPattern {
  int blocks = 0;  // 1..10
  std::array<uint8_t, 10> component{};
};

constexpr size_t kStreamPadding = 64;  // zero bytes required after unstuffed data
constexpr int kMaxLanes = 4;

// Copies entropy-coded data without its stuffed zeros, up to the first marker or the end. Returns
// the number of bytes read up to there (`in` continues with a marker, or ended) and written. Writes
// up to 64 bytes past `written`; does not write the padding. REQUIRES: room in `out` for in.size()
// + 64.
struct Unstuffed {
  size_t read = 0, written = 0;
};
Unstuffed unstuff(std::span<const uint8_t> in, uint8_t* out);

class HuffmanLane {
 public:
  enum class State : uint8_t { kRunning, kDone, kSuspicious };

  HuffmanLane();
  ~HuffmanLane();
  HuffmanLane(HuffmanLane&&) noexcept;
  HuffmanLane& operator=(HuffmanLane&&) noexcept;

  // Starts a stream of unstuffed bytes at a bit. `dc` and `ac` by component; they and the bytes
  // must outlive the stream. REQUIRES: kStreamPadding bytes readable after `bytes`.
  void open(std::span<const uint8_t> bytes, uint64_t bit, const McuPattern& pattern,
            const std::array<const HuffmanTable*, 4>& dc,
            const std::array<const HuffmanTable*, 4>& ac);
  // Starts the next run: `mcus` whole MCUs. Discards the notes of the previous run. A stream that
  // was opened past its end becomes kSuspicious immediately.
  void begin(int mcus);
  State state() const;
  // Bits from the start of `bytes` to the end of the run. REQUIRES: kDone.
  uint64_t bit() const;

  // For a finished run: adds the DC differences of its MCUs to `predictors` (by component), and
  // writes the coefficients of the MCUs [first, end) to `out`, 64 per block, MCU after MCU,
  // coefficient k of the zigzag order at position[k] of its block, with DC differences summed up.
  // REQUIRES: kDone, `out` aligned to 64 bytes; end - first may be 0. Only here can we check that
  // DC values fit 16 bits: the lane becomes kSuspicious if a predictor does not.
  void blocks(int first, int end, const std::array<uint8_t, 64>& position,
              std::array<int, 4>& predictors, int16_t* out);
  size_t held_bytes() const;

 private:
  friend int walk(std::span<HuffmanLane* const> lanes);
  struct Notes;
  std::unique_ptr<Notes> notes_;
};

// Advances all lanes until one of them is not kRunning; returns immediately if one already is not.
// Returns its index. REQUIRES: 1 to kMaxLanes lanes, each in a run.
int walk(std::span<HuffmanLane* const> lanes);

}  // namespace headrace
