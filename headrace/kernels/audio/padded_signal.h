// SPDX-License-Identifier: Apache-2.0
// Parts of a signal with its padding: a part inside the signal is returned in place, a part that
// extends beyond the signal is assembled.
//
// Borrows the samples. One thread.
#pragma once

#include <cstdint>
#include <vector>

namespace headrace {

enum class SignalEdge : uint8_t {
  kZeros,
  kReflect,    // d c b | a b c d | c b a, as NumPy's "reflect"
  kSymmetric,  // c b a | a b c d | d c b, as NumPy's "symmetric"
  kReplicate,  // a a a | a b c d | d d d
  kCircular,   // b c d | a b c d | a b c
};

class PaddedSignal {
 public:
  // `zeros` zeros on either side of the samples are treated as part of the signal; `edge` applies
  // beyond them.
  PaddedSignal(const float* samples, int64_t length, SignalEdge edge, int64_t zeros = 0)
      : samples_(samples), length_(length), edge_(edge), zeros_(zeros) {}

  int64_t length() const { return length_ + 2 * zeros_; }

  // Returns samples [begin, begin + count), of which only the first `wanted` are defined. Valid
  // until the next call. REQUIRES: length() > 0.
  const float* stretch(int64_t begin, int64_t count, int64_t wanted);
  float at(int64_t i) const;

 private:
  const float* const samples_;
  const int64_t length_;
  const SignalEdge edge_;
  const int64_t zeros_;
  std::vector<float> made_;
};

}  // namespace headrace
