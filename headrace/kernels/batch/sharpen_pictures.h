// SPDX-License-Identifier: Apache-2.0
// SharpenPictures: blends pictures with their 3 x 3 blur, or extrapolates away from the blur; each
// thread computes four adjacent columns of eight rows of a plane. The outermost samples are
// unchanged. Same as torchvision's adjust_sharpness on tensors and Pillow's ImageEnhance.Sharpness
// (kernels/filters/sharpen_rows.cc), bit for bit.
#pragma once

#include <cstdint>

#include "headrace/kernels/batch/pass_jobs.h"
#include "headrace/kernels/color/pixel_math.h"
#include "headrace/kernels/filters/sharpen_pixel.h"

namespace headrace {

struct SharpenJob {
  static constexpr int kRows = 8;  // per thread

  PassPlanes planes = {};
  float share = 0;        // torch: float(1.0 - factor); Pillow: float(factor)
  int32_t as_pillow = 0;  // 1: Pillow's arithmetic

  static uint32_t units(const PassPlanes& planes) {
    return pass_warps(int64_t{planes.channels} * ((planes.height + kRows - 1) / kRows) *
                      ((planes.width + 3) / 4));
  }
};

struct SharpenPictures {
  PassJobs<SharpenJob> work;
  const uint8_t* from = nullptr;  // aligned to 4 bytes, and so is `to`; they do not overlap
  uint8_t* to = nullptr;

  HEADRACE_HD int64_t items() const { return int64_t{work.units} * kPassWarp; }

  HEADRACE_HD void operator()(int64_t item) const {
    constexpr int32_t kRows = SharpenJob::kRows;
    const int32_t number = work.job_of(static_cast<uint32_t>(item / kPassWarp));
    const SharpenJob& job = work.jobs[number];
    const PassPlanes& planes = job.planes;
    const uint32_t thread = static_cast<uint32_t>(item - int64_t{work.starts[number]} * kPassWarp);
    const uint32_t fours = static_cast<uint32_t>(planes.width + 3) / 4;
    const uint32_t groups = static_cast<uint32_t>(planes.height + kRows - 1) / kRows;
    const uint32_t group = thread / fours, channel = group / groups;
    if (channel >= static_cast<uint32_t>(planes.channels)) return;
    const int32_t begin = static_cast<int32_t>((group - channel * groups) * kRows);
    const int32_t end = begin + kRows < planes.height ? begin + kRows : planes.height;
    columns(job, channel, static_cast<int32_t>(thread - group * fours) * 4, begin, end);
  }

 private:
  // Four samples of a row, and the sums of three neighbors around each: those of the first and
  // third sample in the halves of one word, those of the second and fourth in another.
  struct Row {
    uint32_t four = 0, even = 0, odd = 0;
  };

  HEADRACE_HD static Row load(const uint8_t* row, int32_t x, int32_t width, bool words) {
    const uint32_t four = load_four(row, x, width, words);
    const uint32_t left = x > 0 ? row[x - 1] : 0, right = x + 4 < width ? row[x + 4] : 0;
    const uint32_t even = four & 0x00ff00ff, odd = four >> 8 & 0x00ff00ff, both = even + odd;
    return {four, both + (left | odd << 16), both + (even >> 16 | right << 16)};
  }

  // Weighted sums of nine samples.
  template <bool as_pillow>
  HEADRACE_HD static uint32_t blended(uint32_t four, uint32_t even, uint32_t odd, float share) {
    uint32_t bytes[4];
    HEADRACE_UNROLLED
    for (int i = 0; i < 4; ++i) {
      const uint32_t blur = thirteenth_of((i & 1 ? odd : even) >> 16 * (i >> 1) & 0xffff);
      const uint32_t value = words::byte_of(four, i);
      bytes[i] =
          as_pillow
              ? uint32_t{blend_as_pillow(static_cast<int>(value), static_cast<int>(blur), share)}
              : extrapolated(value, blur, share);
    }
    return words::lowest_bytes(bytes[0], bytes[1], bytes[2], bytes[3]);
  }

  HEADRACE_HD void columns(const SharpenJob& job, uint32_t channel, int32_t x, int32_t begin,
                           int32_t end) const {
    const PassPlanes& planes = job.planes;
    const int32_t height = planes.height, width = planes.width;
    const bool reads_words = planes.reads_words(), stores_words = planes.stores_words();
    const uint8_t* in =
        from + planes.from + channel * planes.from_plane + int64_t{begin} * planes.from_row;
    uint8_t* out = to + planes.to + channel * planes.to_plane + int64_t{begin} * planes.to_row;
    // The picture's first and last column.
    uint32_t kept = x == 0 ? 0xff : 0;
    if (width - 1 - x < 4) kept |= 0xffu << 8 * (width - 1 - x);
    Row above = begin > 0 ? load(in - planes.from_row, x, width, reads_words) : Row{};
    Row row = load(in, x, width, reads_words);
    HEADRACE_ROLLED
    for (int32_t y = begin; y < end; ++y) {
      in += planes.from_row;
      const Row below = y + 1 < height ? load(in, x, width, reads_words) : Row{};
      const uint32_t even = above.even + row.even + below.even + 4 * (row.four & 0x00ff00ff);
      const uint32_t odd = above.odd + row.odd + below.odd + 4 * (row.four >> 8 & 0x00ff00ff);
      const uint32_t four = job.as_pillow ? blended<true>(row.four, even, odd, job.share)
                                          : blended<false>(row.four, even, odd, job.share);
      const uint32_t stays = y == 0 || y + 1 == height ? ~0u : kept;
      store_four(out, x, width, stores_words, (four & ~stays) | (row.four & stays));
      out += planes.to_row;
      above = row;
      row = below;
    }
  }
};

}  // namespace headrace
