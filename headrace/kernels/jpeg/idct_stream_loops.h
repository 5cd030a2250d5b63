// SPDX-License-Identifier: Apache-2.0
// Runs the inverse DCT on successive groups of blocks. A group's second pass is interleaved with
// the next group's first pass, because either pass alone would wait for its own results.
//
// A SIMD level's idct_core_*.h includes this inside its target region and after its passes, which
// are overloads for its `Blocks` and their `Rows` between the passes.

namespace headrace {
namespace {

template <class Blocks, class Rows>
class IdctStream {
 public:
  // `step` is IdctTable::step.
  [[gnu::always_inline]] IdctStream(const int16_t* step, ptrdiff_t stride)
      : step_(step), stride_(stride) {}
  // Writes the samples of the previous blocks, if any.
  [[gnu::always_inline]] void add(const Blocks& blocks, uint8_t* out) {
    Rows ahead;
    decltype(idct_first_half<0>(blocks, step_, ahead)) first[2];
    if (__builtin_expect(out_ == nullptr, 0)) {
      first[0] = idct_first_half<0>(blocks, step_, ahead);
      first[1] = idct_first_half<1>(blocks, step_, ahead);
    } else {
      idct_second_half<0>(rows_, out_, stride_);
      first[0] = idct_first_half<0>(blocks, step_, ahead);
      idct_second_half<1>(rows_, out_, stride_);
      first[1] = idct_first_half<1>(blocks, step_, ahead);
    }
    check_first_rows(first[0], first[1], blocks, step_, ahead);
    rows_ = ahead;
    out_ = out;
  }
  // Writes the samples of the last blocks.
  [[gnu::always_inline]] void finish() {
    if (!out_) return;
    idct_second_half<0>(rows_, out_, stride_);
    idct_second_half<1>(rows_, out_, stride_);
    out_ = nullptr;
  }

 private:
  const int16_t* step_;
  ptrdiff_t stride_;
  Rows rows_{};
  uint8_t* out_ = nullptr;
};

}  // namespace
}  // namespace headrace
