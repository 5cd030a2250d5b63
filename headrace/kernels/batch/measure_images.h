// SPDX-License-Identifier: Apache-2.0
// Lookup tables that depend on a measurement of the image (contrast, autocontrast, equalize), for
// 8-bit planes. CountValues counts how often each value occurs; MakeMeasuredTables makes the tables
// from these counts, which are integers, so the order of summation does not matter.
#pragma once

#include <cstdint>

#include "headrace/kernels/batch/lanes.h"
#include "headrace/kernels/batch/machine_words.h"
#include "headrace/kernels/batch/pixel_program.h"
#include "headrace/kernels/color/pixel_math.h"

namespace headrace {

struct MeasureJob {
  int64_t at = 0;              // of the image's first sample
  uint32_t code = 0;           // PassCode
  float factor = 0, rest = 0;  // for contrast: float(factor), float(1 - factor)
  uint32_t unused = 0;
};

// An item is a part of a plane; on a GPU a block of threads shares it and counts in shared memory.
// For contrast, the gray of all channels is counted as the first plane.
struct CountValues {
  static constexpr int64_t kPart = 1 << 15;  // pixels per item

  const uint8_t* images = nullptr;
  const MeasureJob* jobs = nullptr;
  uint32_t* counts = nullptr;  // [jobs][channels][256], initially zero
  int64_t count = 0;           // jobs
  int64_t pixels = 0;          // per image; planes are dense
  int32_t channels = 3;        // 1 or 3
  bool in_words = false;       // images and planes begin at multiples of 4

  HEADRACE_HD int64_t items() const { return count * channels * parts(); }

  HEADRACE_HD void operator()(int64_t item) const { add(item, 0, 1, counts_of(item)); }

  HEADRACE_HD uint32_t* counts_of(int64_t item) const { return counts + item / parts() * 256; }

  // The part of the work for one of several threads.
  HEADRACE_HD void add(int64_t item, int thread, int threads, uint32_t* to) const {
    const int64_t plane = item / parts(), job_number = plane / channels;
    const int64_t begin = (item - plane * parts()) * kPart;
    const int64_t end = begin + kPart < pixels ? begin + kPart : pixels;
    const int channel = static_cast<int>(plane - job_number * channels);
    const MeasureJob job = jobs[job_number];
    const auto code = static_cast<PassCode>(job.code);
    const bool gray = code <= PassCode::kPillowContrast;
    if (gray && channel > 0) return;
    const uint8_t* const from = images + job.at + channel * pixels;
    const bool mixes = gray && channels == 3;
    HEADRACE_ROLLED
    for (int64_t i = begin + 4 * thread; i < end; i += 4 * threads) {
      uint32_t four = four_at(from, i, end);
      if (mixes) {
        four = gray_of(four, four_at(from + pixels, i, end), four_at(from + 2 * pixels, i, end),
                       code == PassCode::kPillowContrast);
      }
      HEADRACE_UNROLLED
      for (int k = 0; k < 4; ++k) {
        if (i + k < end) words::add(to + words::byte_of(four, k), 1);
      }
    }
  }

 private:
  HEADRACE_HD int64_t parts() const { return (pixels + kPart - 1) / kPart; }

  HEADRACE_HD uint32_t four_at(const uint8_t* plane, int64_t i, int64_t end) const {
    if (in_words) return words::load<1>(plane + i).word[0];
    uint32_t four = 0;
    HEADRACE_ROLLED
    for (int k = 0; k < 4 && i + k < end; ++k) four |= uint32_t{plane[i + k]} << 8 * k;
    return four;
  }

  HEADRACE_HD static uint32_t gray_of(uint32_t r, uint32_t g, uint32_t b, bool as_pillow) {
    uint32_t gray = 0;
    HEADRACE_UNROLLED
    for (int k = 0; k < 4; ++k) {
      const int red = int(words::byte_of(r, k)), green = int(words::byte_of(g, k)),
                blue = int(words::byte_of(b, k));
      const uint8_t one =
          as_pillow ? gray_as_pillow(red, green, blue)
                    : static_cast<uint8_t>(luma_of(float(red), float(green), float(blue)));
      gray |= uint32_t{one} << 8 * k;
    }
    return gray;
  }
};

// An item is a channel of an image.
struct MakeMeasuredTables {
  static constexpr int kResidentBlocks = 2;  // needs 70 registers on sm_120, and there are few
                                             // items

  const MeasureJob* jobs = nullptr;
  const uint32_t* counts = nullptr;  // as filled in by CountValues
  uint8_t* tables = nullptr;         // [jobs][channels][256]
  int64_t count = 0;                 // jobs
  int64_t pixels = 0;                // pixels per image
  int32_t channels = 3;

  HEADRACE_HD int64_t items() const { return count * channels; }

  HEADRACE_HD void operator()(int64_t item, Lane lane) const {
    const int64_t number = item / channels;
    const MeasureJob job = jobs[number];
    uint8_t* const table = tables + item * 256;
    const uint32_t* const own = counts + item * 256;
    switch (static_cast<PassCode>(job.code)) {
      case PassCode::kContrast:
      case PassCode::kPillowContrast:
        return blend_with_gray(job, counts + number * channels * 256, table, lane);
      case PassCode::kEqualize:
        return equalize(own, 256 * lane.number / lane.count, 256 * (lane.number + 1) / lane.count,
                        table);
      default:
        return stretch(job, own, table, lane);
    }
  }

 private:
  HEADRACE_HD void blend_with_gray(const MeasureJob& job, const uint32_t* gray, uint8_t* table,
                                   Lane lane) const {
    uint64_t sum = 0;
    HEADRACE_ROLLED
    for (uint32_t value = 0; value < 256; ++value) sum += uint64_t{gray[value]} * value;
    const bool as_pillow = static_cast<PassCode>(job.code) == PassCode::kPillowContrast;
    // The same computation as contrast_pass() on the CPU.
    const auto all = static_cast<double>(sum), of = static_cast<double>(pixels);
    const int whole = static_cast<int>(all / of + 0.5);
    const float mean = static_cast<float>(all) / static_cast<float>(of);
    HEADRACE_ROLLED
    for (int value = lane.number; value < 256; value += lane.count) {
      table[value] = as_pillow
                         ? blend_as_pillow(value, whole, job.factor)
                         : blend_as_torch(static_cast<float>(value), mean, job.factor, job.rest);
    }
  }

  HEADRACE_HD void stretch(const MeasureJob& job, const uint32_t* own, uint8_t* table,
                           Lane lane) const {
    int least = 255, most = 0;
    HEADRACE_ROLLED
    for (int value = 0; value < 256; ++value) {
      if (own[value] == 0) continue;
      if (value < least) least = value;
      most = value;
    }
    const bool as_pillow = static_cast<PassCode>(job.code) == PassCode::kPillowAutocontrast;
    HEADRACE_ROLLED
    for (int value = lane.number; value < 256; value += lane.count) {
      table[value] =
          as_pillow ? stretch_as_pillow(value, least, most) : stretch_as_torch(value, least, most);
    }
  }
};

}  // namespace headrace
