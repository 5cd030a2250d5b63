// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/audio/window.h"

#include <algorithm>

#include "headrace/base/random.h"
#include "headrace/kernels/audio/real_fft.h"

namespace headrace {
namespace {

double sample_of(WindowShape shape, int i, int whole, double blackman) {
  const double cosine = unit_root(i % whole, whole).cosine;
  switch (shape) {
    case WindowShape::kHann:
      return 0.5 - 0.5 * cosine;
    case WindowShape::kHamming:
      return 0.54 - 0.46 * cosine;
    case WindowShape::kBlackman:
      return blackman - 0.5 * cosine +
             (0.5 - blackman) * unit_root(int64_t{2} * i % whole, whole).cosine;
    case WindowShape::kBartlett:
      return std::min(2.0 * i / whole, 2 - 2.0 * i / whole);
    case WindowShape::kPovey: {
      const double hann = 0.5 - 0.5 * cosine;
      return hann > 0 ? portable_exp(0.85 * portable_log(hann)) : 0;
    }
    case WindowShape::kRectangular:
      break;
  }
  return 1;
}

}  // namespace

std::vector<float> window_of(WindowShape shape, int length, bool periodic, double blackman) {
  const int whole = periodic ? length : length - 1;
  std::vector<float> out;
  for (int i = 0; i < length; ++i) {
    out.push_back(length == 1 ? 1.0f : static_cast<float>(sample_of(shape, i, whole, blackman)));
  }
  return out;
}

}  // namespace headrace
