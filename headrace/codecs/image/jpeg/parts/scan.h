// SPDX-License-Identifier: Apache-2.0
// Shared by readers and writers of a scan: its parameters, its blocks in order, and the choices
// that the standard leaves to the encoder. Plain data; nothing here reads bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/headers/frame.h"

namespace headrace {

// A scan header (B.2.3), with its components looked up in the frame.
struct JpegScan {
  int count = 0;                   // number of components
  std::array<int, 4> component{};  // their indices in the frame
  std::array<int, 4> dc_slot{}, ac_slot{};
  int first = 0, last = 63;  // Ss, Se
  int high = 0, low = 0;     // Ah, Al
  int restart_interval = 0;  // in MCUs; 0: none
  bool progressive = false;
};

// Choices that the standard leaves to the writer of a scan. Defaults as in libjpeg.
struct ScanChoices {
  enum Padding : uint8_t { kOnes, kZeros, kListed };
  Padding padding = kOnes;           // padding of the last byte before a restart marker or the
                                     // scan's end
  std::vector<uint8_t> listed;       // the padding bits for each such end
  std::vector<uint32_t> run_breaks;  // blocks of the scan before which an end-of-band run stops
};

// The padding blocks of one component, which complete the MCUs at the image's right and lower
// edge. Interleaved scans contain them, but they are not visible.
struct EdgeBlocks {
  int wide = 0, high = 0;                // blocks that are real
  int padded_wide = 0, padded_high = 0;  // whole MCUs
  std::vector<int16_t> coefficients;     // to the right of each real row, then whole rows below

  size_t count() const { return coefficients.size() / 64; }
  // REQUIRES: (x, y) is inside the padded size and outside the real size.
  int16_t* at(int x, int y) { return coefficients.data() + 64 * index(x, y); }
  const int16_t* at(int x, int y) const { return coefficients.data() + 64 * index(x, y); }
  size_t index(int x, int y) const {
    const size_t right = size_t(padded_wide - wide);
    if (y < high) return y * right + size_t(x - wide);
    return high * right + size_t(y - high) * padded_wide + x;
  }
};

// Plane is CoefficientPlane or const CoefficientPlane. Borrows the planes.
template <class Plane>
class BlocksOf {
 public:
  // REQUIRES: the planes have the sizes of the frame, which is laid out.
  BlocksOf(const JpegFrame& frame, std::span<Plane> planes) : planes_(planes) {
    for (int c = 0; c < frame.count; ++c) {
      const JpegComponent& component = frame.component[c];
      EdgeBlocks& edge = edges_[c];
      edge.wide = component.blocks_wide;
      edge.high = component.blocks_high;
      edge.padded_wide = frame.mcus_wide * component.h;
      edge.padded_high = frame.mcus_high * component.v;
      const size_t all = size_t(edge.padded_wide) * edge.padded_high;
      edge.coefficients.resize((all - size_t(edge.wide) * edge.high) * 64);
    }
  }
  auto* block(int c, int x, int y) {
    const EdgeBlocks& edge = edges_[c];
    if (x < edge.wide && y < edge.high) [[likely]] {
      return planes_[c].coefficients.data() + (size_t(y) * edge.wide + x) * 64;
    }
    using Pointer = decltype(planes_[c].coefficients.data());
    return static_cast<Pointer>(edges_[c].at(x, y));
  }
  EdgeBlocks& edge(int c) { return edges_[c]; }

 private:
  std::span<Plane> planes_;
  std::array<EdgeBlocks, 4> edges_;
};

// Blocks beyond the edge as libjpeg's encoder makes them: no AC coefficients, and the DC value of
// the previous block in the MCU, so that the difference is 0. Calls visit(ordinal, block, predicted
// DC) for each such block of a component in the order of EdgeBlocks::index(); the previous block is
// always complete by then.
template <class Blocks, class Visit>
void for_each_edge_block(const JpegFrame& frame, int c, Blocks& blocks, Visit&& visit) {
  EdgeBlocks& edge = blocks.edge(c);
  const int h = frame.component[c].h;
  for (int y = 0; y < edge.padded_high; ++y) {
    for (int x = y < edge.high ? edge.wide : 0; x < edge.padded_wide; ++x) {
      const bool begins_row = x % h == 0;
      const int16_t before =
          begins_row ? *blocks.block(c, x + h - 1, y - 1) : *blocks.block(c, x - 1, y);
      visit(edge.index(x, y), edge.at(x, y), before);
    }
  }
}

// Visits the blocks of a scan in order: per_block(position in the scan, block), and restart()
// between two restart intervals. Returns false early if restart() does, or if keep_going(), called
// after each row, does.
template <class Blocks, class PerBlock, class Restart, class KeepGoing>
bool walk_scan(const JpegFrame& frame, const JpegScan& scan, Blocks& blocks, PerBlock&& per_block,
               Restart&& restart, KeepGoing&& keep_going) {
  int left = scan.restart_interval;
  const auto begin_mcu = [&] {
    if (scan.restart_interval == 0) return true;
    if (left == 0) {
      if (!restart()) return false;
      left = scan.restart_interval;
    }
    --left;
    return true;
  };
  if (scan.count == 1) {
    const JpegComponent& component = frame.component[scan.component[0]];
    for (int y = 0; y < component.blocks_high; ++y) {
      for (int x = 0; x < component.blocks_wide; ++x) {
        if (!begin_mcu()) return false;
        per_block(0, blocks.block(scan.component[0], x, y));
      }
      if (!keep_going()) return false;
    }
    return true;
  }
  for (int row = 0; row < frame.mcus_high; ++row) {
    for (int column = 0; column < frame.mcus_wide; ++column) {
      if (!begin_mcu()) return false;
      for (int i = 0; i < scan.count; ++i) {
        const JpegComponent& component = frame.component[scan.component[i]];
        for (int y = 0; y < component.v; ++y) {
          for (int x = 0; x < component.h; ++x) {
            per_block(i, blocks.block(scan.component[i], column * component.h + x,
                                      row * component.v + y));
          }
        }
      }
    }
    if (!keep_going()) return false;
  }
  return true;
}

}  // namespace headrace
