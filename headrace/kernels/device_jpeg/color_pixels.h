// SPDX-License-Identifier: Apache-2.0
// Samples -> rows of the window: upsampling and color conversion as in kernels/jpeg/upsample.h and
// kernels/color/planar_color.h, to the last bit; one thread per eight pixels of a row.
#pragma once

#include <cstdint>

#include "headrace/kernels/batch/machine_words.h"
#include "headrace/kernels/color/ycc_constants.h"
#include "headrace/kernels/device_jpeg/device_image.h"

namespace headrace {

// Reads four adjacent samples of a component, upsampled to the image's size. Edges are repeated.
// Samples in blocks that were not transformed are not read; their pixels are outside the window.
template <bool kIsKnown = false, Upsampling kKnown = Upsampling::kNone>
class UpsampledPlane {
 public:
  HEADRACE_HD UpsampledPlane(const DevicePlane& plane, const uint8_t* samples)
      : plane_(plane), samples_(samples + plane.samples) {}

  // Row y, columns x to x + 3. REQUIRES: x is a multiple of 4.
  HEADRACE_HD void four(int32_t x, int32_t y, int32_t (&out)[4]) const {
    switch (kIsKnown ? kKnown : plane_.upsampling) {
      case Upsampling::kNone:
        return side_by_side(x, row_at(y), out);
      case Upsampling::kRepeat:
        return repeated(x, row_at(y >> plane_.v_ratio_shift), out);
      case Upsampling::kH1V2:
        return vertical(x, y, out);
      case Upsampling::kH2V1:
        return horizontal(x, row_at(y), out);
      case Upsampling::kH2V2:
        return both(x, y, out);
    }
  }

 private:
  HEADRACE_HD static int32_t within(int32_t value, int32_t low, int32_t high) {
    return value < low ? low : value > high ? high : value;
  }

  // The first sample of a row.
  HEADRACE_HD const uint8_t* row_at(int32_t y) const {
    const int32_t first = plane_.first_row * 8, end = first + plane_.rows * 8;
    const int32_t last = (plane_.height < end ? plane_.height : end) - 1;
    return samples_ + int64_t{within(y, first, last) - first} * plane_.stride;
  }
  HEADRACE_HD int32_t sample(const uint8_t* row, int32_t x) const {
    const int32_t first = plane_.first_column * 8, end = first + plane_.columns * 8;
    const int32_t last = (plane_.width < end ? plane_.width : end) - 1;
    return row[within(x, first, last) - first];
  }
  // The neighboring row that is blended with this row.
  HEADRACE_HD const uint8_t* far_row(int32_t y) const {
    const int32_t own = y >> 1;
    return row_at(y & 1 ? own + 1 : own > 0 ? own - 1 : 0);
  }

  HEADRACE_HD void side_by_side(int32_t x, const uint8_t* row, int32_t (&out)[4]) const {
    const uint32_t four = words::load<1>(row + (x - plane_.first_column * 8)).word[0];
    HEADRACE_UNROLLED
    for (int i = 0; i < 4; ++i) out[i] = static_cast<int32_t>(words::byte_of(four, i));
  }

  HEADRACE_HD void repeated(int32_t x, const uint8_t* row, int32_t (&out)[4]) const {
    HEADRACE_UNROLLED
    for (int i = 0; i < 4; ++i) out[i] = sample(row, (x + i) >> plane_.h_ratio_shift);
  }

  HEADRACE_HD void vertical(int32_t x, int32_t y, int32_t (&out)[4]) const {
    int32_t near[4], far[4];
    side_by_side(x, row_at(y >> 1), near);
    side_by_side(x, far_row(y), far);
    const int32_t round = y & 1 ? 2 : 1;
    HEADRACE_UNROLLED
    for (int i = 0; i < 4; ++i) out[i] = (3 * near[i] + far[i] + round) >> 2;
  }

  HEADRACE_HD void horizontal(int32_t x, const uint8_t* row, int32_t (&out)[4]) const {
    const int32_t own = x >> 1;
    const int32_t a = sample(row, own - 1), b = sample(row, own), c = sample(row, own + 1),
                  d = sample(row, own + 2);
    out[0] = (3 * b + a + 1) >> 2;
    out[1] = (3 * b + c + 2) >> 2;
    out[2] = (3 * c + b + 1) >> 2;
    out[3] = (3 * c + d + 2) >> 2;
  }

  HEADRACE_HD void both(int32_t x, int32_t y, int32_t (&out)[4]) const {
    const uint8_t* const near = row_at(y >> 1);
    const uint8_t* const far = far_row(y);
    const auto sum = [&](int32_t at) { return 3 * sample(near, at) + sample(far, at); };
    const int32_t own = x >> 1;
    const int32_t a = sum(own - 1), b = sum(own), c = sum(own + 1), d = sum(own + 2);
    out[0] = (3 * b + a + 8) >> 4;
    out[1] = (3 * b + c + 7) >> 4;
    out[2] = (3 * c + b + 8) >> 4;
    out[3] = (3 * c + d + 7) >> 4;
  }

  const DevicePlane& plane_;
  const uint8_t* samples_;
};

template <ColorKind kKind>
struct ColorPixels {
  const DeviceImage* images = nullptr;
  const PieceJob* jobs = nullptr;
  const uint8_t* samples = nullptr;
  uint8_t* out = nullptr;
  int64_t count = 0;  // of jobs

  HEADRACE_HD int64_t items() const { return count * kPiece; }

  HEADRACE_HD void operator()(int64_t item) const {
    const PieceJob& job = jobs[item / kPiece];
    const DeviceImage& image = images[job.image];
    const int32_t number = static_cast<int32_t>(job.first + item % kPiece);
    const int32_t eights = (image.margin + image.width + 7) / 8;
    const int32_t row = number / eights, eight = number - row * eights;
    if (row >= image.height) return;
    const int32_t x = image.x - image.margin + eight * 8, y = image.y + row;
    uint8_t* const to = out + image.out + int64_t{row} * image.out_stride + eight * 8;

    if constexpr (kKind == ColorKind::kAny) {
      HEADRACE_ROLLED
      for (int i = 0; i < 8; i += 4) any(image, x + i, y, to + i);
    } else {
      constexpr Upsampling kChroma =
          kKind == ColorKind::kPlain ? Upsampling::kNone : Upsampling::kH2V2;
      const UpsampledPlane<true, Upsampling::kNone> luma(image.plane[0], samples);
      const UpsampledPlane<true, kChroma> blue(image.plane[1], samples);
      const UpsampledPlane<true, kChroma> red(image.plane[2], samples);
      words::Together<2> bytes[3];
      HEADRACE_UNROLLED
      for (int half = 0; half < 2; ++half) {
        int32_t a[4], b[4], c[4];
        luma.four(x + half * 4, y, a);
        blue.four(x + half * 4, y, b);
        red.four(x + half * 4, y, c);
        rgb_from_ycc(a, b, c);
        bytes[0].word[half] = words::clamped_bytes(a[0], a[1], a[2], a[3]);
        bytes[1].word[half] = words::clamped_bytes(b[0], b[1], b[2], b[3]);
        bytes[2].word[half] = words::clamped_bytes(c[0], c[1], c[2], c[3]);
      }
      HEADRACE_UNROLLED
      for (int channel = 0; channel < 3; ++channel) {
        words::store(to + int64_t{channel} * image.out_plane, bytes[channel]);
      }
    }
  }

 private:
  HEADRACE_HD void any(const DeviceImage& image, int32_t x, int32_t y, uint8_t* to) const {
    int32_t a[4], b[4], c[4];
    UpsampledPlane<>(image.plane[0], samples).four(x, y, a);
    if (image.components == 1) {
      for (int channel = 0; channel < image.channels; ++channel) store(to, image, channel, a);
      return;
    }
    UpsampledPlane<>(image.plane[1], samples).four(x, y, b);
    UpsampledPlane<>(image.plane[2], samples).four(x, y, c);
    if (image.color == DeviceColor::kRgbFromYcc || image.color == DeviceColor::kGrayFromYcc) {
      rgb_from_ycc(a, b, c);
    }
    if (image.channels == 1) {
      gray_from_rgb(a, b, c);
      return store(to, image, 0, a);
    }
    store(to, image, 0, a);
    store(to, image, 1, b);
    store(to, image, 2, c);
  }

  HEADRACE_HD static void store(uint8_t* to, const DeviceImage& image, int channel,
                                const int32_t (&four)[4]) {
    words::store(to + int64_t{channel} * image.out_plane,
                 words::Together<1>{words::clamped_bytes(four[0], four[1], four[2], four[3])});
  }

  // In place, without clamping.
  HEADRACE_HD static void rgb_from_ycc(int32_t (&y)[4], int32_t (&u)[4], int32_t (&v)[4]) {
    constexpr int32_t kRound = 1 << 15;
    HEADRACE_UNROLLED
    for (int i = 0; i < 4; ++i) {
      const int32_t luma = (y[i] << 16) + kRound, blue = u[i] - 128, red = v[i] - 128;
      y[i] = (luma + 91881 * red) >> 16;
      u[i] = (luma - 22554 * blue - 46802 * red) >> 16;
      v[i] = (luma + 116130 * blue) >> 16;
    }
  }

  HEADRACE_HD static void gray_from_rgb(int32_t (&red)[4], const int32_t (&green)[4],
                                        const int32_t (&blue)[4]) {
    HEADRACE_UNROLLED
    for (int i = 0; i < 4; ++i) {
      const uint32_t r = words::clamped_bytes(red[i], green[i], blue[i], 0);
      const auto of = [&](int at) { return static_cast<int32_t>(words::byte_of(r, at)); };
      red[i] =
          (of(0) * kGrayRed + of(1) * 2 * kGrayHalfGreen + of(2) * kGrayBlue + kGrayRound) >> 16;
    }
  }
};

}  // namespace headrace
