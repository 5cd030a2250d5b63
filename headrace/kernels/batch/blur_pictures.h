// SPDX-License-Identifier: Apache-2.0
// BlurPictures: blurs pictures along rows and then along columns, with mirrored borders; an item is
// a tile of a plane. Both sums are chains of fused multiply-adds in the order of the taps, with a
// float intermediate, as on the CPU (kernels/filters/filter_rows.h), so the bits are the CPU's. The
// tile's horizontally blurred rows are in the shared memory of a block, in which each thread
// computes four columns of four rows of the result; on the CPU one thread does all the work.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/kernels/batch/pass_jobs.h"
#include "headrace/kernels/machine_floats.h"

namespace headrace {

struct BlurJob {
  static constexpr int kMaxTaps = 31;
  static constexpr int kTileColumns = 64, kTileRows = 64;

  struct alignas(16) FourWeights {
    float of[4] = {};
  };

  PassPlanes planes = {};
  // Along rows: taps padded with zeros in front, so that four columns start reading at a word, and
  // at the end, so that taps are read in fours. Adding a product with 0 does not change a sum.
  FourWeights along[8] = {};
  int32_t along_words = 0;  // in units of four taps
  int32_t begins = 0;       // columns to the left of the output where reading begins; a multiple of
                            // four
  // Across rows: the taps, followed by three zeros.
  int32_t across_taps = 0;
  float across[kMaxTaps + 3] = {};

  // REQUIRES: odd tap counts up to kMaxTaps, with half of each less than the picture's side.
  static BlurJob of(const PassPlanes& planes, std::span<const float> along,
                    std::span<const float> across);
  static uint32_t units(const PassPlanes& planes) {
    return static_cast<uint32_t>(int64_t{planes.channels} *
                                 ((planes.height + kTileRows - 1) / kTileRows) *
                                 ((planes.width + kTileColumns - 1) / kTileColumns));
  }
};

struct BlurPictures {
  static constexpr int kRows = 4;  // per thread
  static constexpr int kTileThreads = BlurJob::kTileColumns / 4 * BlurJob::kTileRows / kRows;
  // A tile plus the rows above and below that it reads.
  struct alignas(16) Four {
    float of[4];
  };
  using Rows = Four[BlurJob::kTileRows + BlurJob::kMaxTaps - 1][BlurJob::kTileColumns / 4];

  PassJobs<BlurJob> work;
  const uint8_t* from = nullptr;  // aligned to 4 bytes, and so is `to`; they do not overlap
  uint8_t* to = nullptr;

  HEADRACE_HD int64_t items() const { return work.units; }

  // Single-threaded version.
  HEADRACE_HD void operator()(int64_t item) const {
    Rows rows;
    const Tile tile = tile_of(item);
    for (int thread = 0; thread < kTileThreads; ++thread) blur_along(tile, thread, rows);
    for (int thread = 0; thread < kTileThreads; ++thread) blur_across(tile, thread, rows);
  }

  struct Tile {
    const BlurJob& job;
    int32_t channel, top, left, bottom;  // of the output
  };
  HEADRACE_HD Tile tile_of(int64_t item) const {
    const int32_t number = work.job_of(static_cast<uint32_t>(item));
    const BlurJob& job = work.jobs[number];
    const uint32_t tile = static_cast<uint32_t>(item) - work.starts[number];
    const uint32_t wide =
        static_cast<uint32_t>(job.planes.width + BlurJob::kTileColumns - 1) / BlurJob::kTileColumns;
    const uint32_t high =
        static_cast<uint32_t>(job.planes.height + BlurJob::kTileRows - 1) / BlurJob::kTileRows;
    const uint32_t line = tile / wide, channel = line / high;
    const auto top = static_cast<int32_t>(line - channel * high) * BlurJob::kTileRows;
    const int32_t end = top + BlurJob::kTileRows;
    return {job, static_cast<int32_t>(channel), top,
            static_cast<int32_t>(tile - line * wide) * BlurJob::kTileColumns,
            end < job.planes.height ? end : job.planes.height};
  }

  // Blurs, along rows, all rows that the tile reads: the first is half the taps above the tile.
  HEADRACE_HD void blur_along(const Tile& tile, int thread, Rows& rows) const {
    constexpr int kFours = BlurJob::kTileColumns / 4;
    const BlurJob& job = tile.job;
    const PassPlanes& planes = job.planes;
    const int32_t half = job.across_taps / 2, count = tile.bottom - tile.top + 2 * half;
    const int32_t four = thread % kFours, x = tile.left + 4 * four;
    if (x >= planes.width) return;
    const uint8_t* const plane = from + planes.from + tile.channel * planes.from_plane;
    HEADRACE_ROLLED
    for (int32_t row = thread / kFours; row < count; row += kTileThreads / kFours) {
      const int32_t y = mirrored(tile.top - half + row, planes.height);
      rows[row][four] = sum_along(job, plane + int64_t{y} * planes.from_row, x);
    }
  }

  HEADRACE_HD void blur_across(const Tile& tile, int thread, const Rows& rows) const {
    constexpr int kFours = BlurJob::kTileColumns / 4;
    const BlurJob& job = tile.job;
    const PassPlanes& planes = job.planes;
    const int32_t four = thread % kFours, x = tile.left + 4 * four;
    const int32_t first = thread / kFours * kRows, y = tile.top + first;
    if (x >= planes.width || y >= tile.bottom) return;
    const int32_t end = tile.bottom - y < kRows ? tile.bottom - y : kRows;
    const int32_t count = end - 1 + job.across_taps;  // rows
    float sums[kRows][4] = {};
    // The weights of input row i: output row r takes tap i - r; zeros before and after the taps.
    float weights[kRows] = {};
    HEADRACE_ROLLED
    for (int32_t i = 0; i < count; ++i) {
      HEADRACE_UNROLLED
      for (int r = kRows - 1; r > 0; --r) weights[r] = weights[r - 1];
      weights[0] = job.across[i];
      const Four in = rows[first + i][four];
      HEADRACE_UNROLLED
      for (int r = 0; r < kRows; ++r) {
        HEADRACE_UNROLLED
        for (int c = 0; c < 4; ++c) sums[r][c] = floats::fma(in.of[c], weights[r], sums[r][c]);
      }
    }
    uint8_t* out = to + planes.to + tile.channel * planes.to_plane + int64_t{y} * planes.to_row;
    HEADRACE_UNROLLED
    for (int r = 0; r < kRows; ++r) {
      if (r >= end) break;
      store_four(out, x, planes.width, planes.stores_words(), rounded(sums[r]));
      out += planes.to_row;
    }
  }

 private:
  // Reflects without repeating the edge sample.
  HEADRACE_HD static int32_t mirrored(int32_t at, int32_t size) {
    return at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;
  }
  HEADRACE_HD static uint32_t rounded(const float sums[4]) {
    return words::lowest_bytes(floats::rounded_byte(sums[0]), floats::rounded_byte(sums[1]),
                               floats::rounded_byte(sums[2]), floats::rounded_byte(sums[3]));
  }

  // Four samples of a row starting at a multiple of four; samples that only get zero weights may
  // have any value.
  HEADRACE_HD static uint32_t load(const PassPlanes& planes, const uint8_t* row, int32_t x) {
    if (x >= 0 && x + 4 <= planes.width && planes.reads_words()) {
      return words::load<1>(row + x).word[0];
    }
    uint32_t four = 0;
    HEADRACE_ROLLED
    for (int i = 0; i < 4; ++i) {
      int32_t at = mirrored(x + i, planes.width);
      at = at < 0 ? 0 : at < planes.width ? at : planes.width - 1;
      four |= uint32_t{row[at]} << 8 * i;
    }
    return four;
  }

  HEADRACE_HD static Four sum_along(const BlurJob& job, const uint8_t* row, int32_t x) {
    Four sum{};
    float in[8];
    x -= job.begins;
    unpack(load(job.planes, row, x), in + 4);
    HEADRACE_ROLLED
    for (int32_t word = 0; word < job.along_words; ++word) {
      HEADRACE_UNROLLED
      for (int c = 0; c < 4; ++c) in[c] = in[c + 4];
      x += 4;
      unpack(load(job.planes, row, x), in + 4);
      const BlurJob::FourWeights weights = job.along[word];
      HEADRACE_UNROLLED
      for (int t = 0; t < 4; ++t) {
        HEADRACE_UNROLLED
        for (int c = 0; c < 4; ++c) {
          sum.of[c] = floats::fma(in[c + t], weights.of[t], sum.of[c]);
        }
      }
    }
    return sum;
  }
  HEADRACE_HD static void unpack(uint32_t four, float* to) {
    HEADRACE_UNROLLED
    for (int i = 0; i < 4; ++i) to[i] = floats::of(words::byte_of(four, i));
  }
};

}  // namespace headrace
