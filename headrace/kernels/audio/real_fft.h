// SPDX-License-Identifier: Apache-2.0
// The plan of a Fourier transform of real frames of one length, for as many frames at a time as a
// register has lanes (frame_kernels.h): where each pass reads and writes, and its twiddles. Values
// never move between lanes, so other lengths are as simple as powers of two.
//
// A frame of an even length n is n / 2 complex numbers (its even samples, and its odd ones); these
// are transformed by passes of radix 4, 5, 3, 2 and any other prime factor, each from one buffer
// into another (Stockham's order, which needs no bit reversal), and a last step separates the even
// and the odd samples. An odd length is transformed as complex numbers without an imaginary part.
//
// Immutable; any thread may use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace {

// Cosine and sine of part / whole of a full turn, within 1e-16. Our own implementation, because C
// libraries differ. REQUIRES: 0 <= part < whole.
struct UnitRoot {
  double cosine, sine;
};
UnitRoot unit_root(int64_t part, int64_t whole);

struct RealFft {
  // Maximum length; a prime length takes O(length^2) operations.
  static constexpr int kMaxSamples = 1 << 15;

  // REQUIRES: 1 <= length <= kMaxSamples.
  explicit RealFft(int length);

  // One radix pass. Input element j of a butterfly is at q + stride * (p + rest * j), for p <
  // `rest` and q < `stride`; output k goes to q + stride * (radix * p + k), times the twiddle of
  // (p, k).
  struct Pass {
    int radix, rest, stride;
    size_t twiddles;  // radix - 1 for each p: real and imaginary parts
    size_t roots;     // for generic radices: cosine and sine of each multiple of turn / radix
  };

  int bins() const { return length / 2 + 1; }
  bool packed() const { return length % 2 == 0; }
  // Minimum size of each of the two buffers, in samples of a frame.
  int room() const { return packed() ? length + 2 : 2 * length; }

  const int length;
  int complex_length;
  std::vector<Pass> passes;
  std::vector<float> factors;  // twiddles and roots of all passes
  // -i times the k-th root of unity, for a packed transform: k up to a quarter of the length.
  std::vector<float> unpacking;
};

}  // namespace headrace
