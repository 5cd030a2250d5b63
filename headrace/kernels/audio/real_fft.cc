// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/audio/real_fft.h"

#include <numbers>

namespace headrace {
namespace {

// By Taylor series, for at most an eighth of a turn.
UnitRoot small_root(double angle) {
  const double square = angle * angle;
  double cosine = 1, sine = 1;
  for (int i = 18; i >= 2; i -= 2) {
    cosine = 1 - cosine * square / double(i * (i - 1));
    sine = 1 - sine * square / double(i * (i + 1));
  }
  return {cosine, sine * angle};
}

void add_root(UnitRoot root, std::vector<float>& to) {
  to.push_back(static_cast<float>(root.cosine));
  to.push_back(static_cast<float>(-root.sine));  // negative angle: forward transform
}

int next_radix(int rest) {
  for (const int radix : {4, 5, 3, 2}) {
    if (rest % radix == 0) return radix;
  }
  int radix = 7;
  while (rest % radix != 0) radix += radix * radix > rest ? rest - radix : 2;
  return radix;
}

}  // namespace

UnitRoot unit_root(int64_t part, int64_t whole) {
  // Reduces to the first eighth of a turn: mirrors at both axes and at the diagonal.
  const bool lower = 2 * part > whole;
  if (lower) part = whole - part;
  const bool left = 4 * part > whole;
  if (left) part = whole - 2 * part;  // of half a turn
  const int64_t half = left ? 2 * whole : whole;
  const bool steep = 8 * part > half;
  // The complement to a quarter turn, with numerator and denominator multiplied by four.
  const auto angle = steep ? 2 * std::numbers::pi * double(half - 4 * part) / double(4 * half)
                           : 2 * std::numbers::pi * double(part) / double(half);
  UnitRoot root = small_root(angle);
  if (steep) root = {root.sine, root.cosine};
  if (left) root.cosine = -root.cosine;
  if (lower) root.sine = -root.sine;
  return root;
}

RealFft::RealFft(int samples) : length(samples), complex_length(packed() ? samples / 2 : samples) {
  int rest = complex_length, stride = 1;
  while (rest > 1) {
    const int radix = next_radix(rest), whole = rest;
    rest /= radix;
    Pass pass{radix, rest, stride, factors.size(), 0};
    for (int p = 0; p < rest; ++p) {
      for (int k = 1; k < radix; ++k) add_root(unit_root(int64_t{p} * k, whole), factors);
    }
    pass.roots = factors.size();
    for (int k = 0; radix > 5 && k < radix; ++k) {
      const UnitRoot root = unit_root(k, radix);
      factors.push_back(static_cast<float>(root.cosine));
      factors.push_back(static_cast<float>(root.sine));
    }
    passes.push_back(pass);
    stride *= radix;
  }
  for (int k = 0; packed() && 2 * k <= complex_length; ++k) {
    const UnitRoot root = unit_root(k, length);
    unpacking.push_back(static_cast<float>(-root.sine));
    unpacking.push_back(static_cast<float>(-root.cosine));
  }
}

}  // namespace headrace
