// SPDX-License-Identifier: Apache-2.0
// RunPrograms: executes each image's instructions on its 8-bit pixels, in place; each thread
// processes four adjacent pixels, in all channels.
#pragma once

#include <cstdint>

#include "headrace/kernels/batch/machine_words.h"
#include "headrace/kernels/batch/pixel_program.h"
#include "headrace/kernels/color/pixel_math.h"

namespace headrace {

// An image, and the range of its instructions in the batch.
struct ProgramJob {
  int64_t at = 0;  // of its first sample
  int32_t first = 0, count = 0;
};

// Four pixels: one word per channel, the first pixel in the lowest byte.
struct FourPixels {
  uint32_t of[3];
};

struct RunPrograms {
  uint8_t* images = nullptr;
  const ProgramJob* jobs = nullptr;
  const PixelInstruction* instructions = nullptr;
  const uint8_t* tables = nullptr;           // [..][channels][256]
  const uint8_t* measured_tables = nullptr;  // the same shape
  int64_t count = 0;                         // jobs
  int64_t pixels = 0;                        // per image; planes are dense
  int32_t channels = 3;                      // 1 or 3
  bool in_words = false;                     // images and planes begin at multiples of 4

  // REQUIRES: fewer than 2^32 units.
  HEADRACE_HD int64_t items() const { return count * fours(); }

  HEADRACE_HD void operator()(int64_t item) const {
    const uint32_t of_image = static_cast<uint32_t>(fours());
    const uint32_t image = static_cast<uint32_t>(item) / of_image;
    const int64_t first = int64_t{static_cast<uint32_t>(item) - image * of_image} * 4;
    const ProgramJob job = jobs[image];
    uint8_t* const at = images + job.at + first;
    FourPixels four = loaded(at, first);
    HEADRACE_ROLLED
    for (int32_t i = job.first; i < job.first + job.count; ++i) follow(instructions[i], four);
    store(four, at, first);
  }

 private:
  HEADRACE_HD int64_t fours() const { return (pixels + 3) / 4; }

  HEADRACE_HD FourPixels loaded(const uint8_t* at, int64_t first) const {
    FourPixels four = {};
    HEADRACE_UNROLLED
    for (int c = 0; c < 3; ++c) {
      if (c >= channels) continue;
      if (in_words) {
        four.of[c] = words::load<1>(at + c * pixels).word[0];
        continue;
      }
      HEADRACE_ROLLED
      for (int i = 0; i < 4 && first + i < pixels; ++i) {
        four.of[c] |= uint32_t{at[c * pixels + i]} << 8 * i;
      }
    }
    return four;
  }

  HEADRACE_HD void store(const FourPixels& four, uint8_t* at, int64_t first) const {
    HEADRACE_UNROLLED
    for (int c = 0; c < 3; ++c) {
      if (c >= channels) continue;
      if (in_words) {
        words::store(at + c * pixels, words::Together<1>{{four.of[c]}});
        continue;
      }
      HEADRACE_ROLLED
      for (int i = 0; i < 4 && first + i < pixels; ++i) {
        at[c * pixels + i] = static_cast<uint8_t>(four.of[c] >> 8 * i);
      }
    }
  }

  HEADRACE_HD void follow(const PixelInstruction& step, FourPixels& four) const {
    const auto code = static_cast<PixelCode>(step.code);
    if (code == PixelCode::kTable) return look_up(tables, step, four);
    if (code == PixelCode::kMeasuredTable) return look_up(measured_tables, step, four);
    if (channels != 3) return;  // a gray image has no color
    switch (code) {
      case PixelCode::kGray:
        return each(four, [](int r, int g, int b) {
          return same(static_cast<uint8_t>(luma_of(float(r), float(g), float(b))));
        });
      case PixelCode::kPillowGray:
        return each(four, [](int r, int g, int b) { return same(gray_as_pillow(r, g, b)); });
      case PixelCode::kPermutation:
        return permute(step, four);
      case PixelCode::kSaturation:
        return each(four, [&](int r, int g, int b) {
          const float gray = floorf(luma_of(float(r), float(g), float(b)));
          const auto blend = [&](int value) {
            return blend_as_torch(float(value), gray, step.values[0], step.values[1]);
          };
          return ByteRgb{{blend(r), blend(g), blend(b)}};
        });
      case PixelCode::kPillowSaturation:
        return each(four, [&](int r, int g, int b) {
          const int gray = gray_as_pillow(r, g, b);
          const auto blend = [&](int value) {
            return blend_as_pillow(value, gray, step.values[0]);
          };
          return ByteRgb{{blend(r), blend(g), blend(b)}};
        });
      case PixelCode::kHue:
        return each(four, [&](int r, int g, int b) {
          return hue_shifted_bytes(uint8_t(r), uint8_t(g), uint8_t(b), step.values[0]);
        });
      case PixelCode::kPillowHue:
        return each(four, [&](int r, int g, int b) {
          return hue_shifted_as_pillow(r, g, b, static_cast<int>(step.values[0]));
        });
      default:
        return;
    }
  }

  HEADRACE_HD void look_up(const uint8_t* of, const PixelInstruction& step,
                           FourPixels& four) const {
    const uint8_t* table = of + int64_t{step.table} * channels * 256;
    HEADRACE_UNROLLED
    for (int c = 0; c < 3; ++c) {
      if (c >= channels) continue;
      uint32_t looked_up = 0;
      HEADRACE_UNROLLED
      for (int i = 0; i < 4; ++i) {
        looked_up |= uint32_t{table[c * 256 + words::byte_of(four.of[c], i)]} << 8 * i;
      }
      four.of[c] = looked_up;
    }
  }

  HEADRACE_HD static ByteRgb same(uint8_t gray) { return {{gray, gray, gray}}; }

  HEADRACE_HD static void permute(const PixelInstruction& step, FourPixels& four) {
    const FourPixels before = four;
    HEADRACE_UNROLLED
    for (int c = 0; c < 3; ++c) {
      const int from = static_cast<int>(step.values[c]);
      four.of[c] = from == 0 ? before.of[0] : from == 1 ? before.of[1] : before.of[2];
    }
  }

  template <class Compute>
  HEADRACE_HD static void each(FourPixels& four, const Compute& compute) {
    FourPixels out = {};
    HEADRACE_UNROLLED
    for (int i = 0; i < 4; ++i) {
      const ByteRgb made =
          compute(int(words::byte_of(four.of[0], i)), int(words::byte_of(four.of[1], i)),
                  int(words::byte_of(four.of[2], i)));
      for (int c = 0; c < 3; ++c) out.of[c] |= uint32_t{made.of[c]} << 8 * i;
    }
    four = out;
  }
};

}  // namespace headrace
