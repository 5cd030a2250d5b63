// SPDX-License-Identifier: Apache-2.0
// The plan of a Fourier transform of real frames of one length, done for as many frames at a time
// as a register has lanes (frame_kernels.h): where each pass reads and writes, and what it
// multiplies with. No value is ever moved between lanes, so any length is as regular as a power of
// two.
//
// A frame of an even length n is n / 2 complex numbers (its even samples, and its odd ones); these
// are transformed by passes of radix 4, 5, 3, 2 and whatever other prime divides them, each from
// one buffer into another (Stockham's order, which needs no bit reversal), and a last step takes
// apart what belongs to the even and to the odd samples. An odd length is transformed as complex
// numbers without an imaginary part.
//
// Immutable; any thread may use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace {

// Cosine and sine of this part of a full turn, within 1e-16: of our own, because those of the C
// library differ from one to another. REQUIRES: 0 <= part < whole.
struct UnitRoot {
  double cosine, sine;
};
UnitRoot unit_root(int64_t part, int64_t whole);

struct RealFft {
  // The longest; a prime of that size takes as many steps as its square.
  static constexpr int kMostSamples = 1 << 15;

  // REQUIRES: 1 <= length <= kMostSamples.
  explicit RealFft(int length);

  // Element j of the radix stands at q + stride * (p + rest * j), for every p below `rest` and
  // every q below `stride`; what becomes of it goes to q + stride * (radix * p + k), times the
  // twiddle of (p, k).
  struct Pass {
    int radix, rest, stride;
    size_t twiddles;  // radix - 1 of each p: real and imaginary part
    size_t roots;     // of other radices: cosine and sine of each radix-th of a turn
  };

  int bins() const { return length / 2 + 1; }
  bool packed() const { return length % 2 == 0; }
  // Minimum size of each of the two buffers, in samples of a frame.
  int room() const { return packed() ? length + 2 : 2 * length; }

  const int length;
  int complex_length;
  std::vector<Pass> passes;
  std::vector<float> factors;  // of the passes
  // -i times the k-th root, of a packed transform: for k up to a quarter of the length.
  std::vector<float> unpacking;
};

}  // namespace headrace
