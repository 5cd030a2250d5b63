// SPDX-License-Identifier: Apache-2.0
// class Ones of progressive_scan_loops.h, implemented with deposited(), for CPUs where deposited()
// is fast. Included like progressive_scan_loops.h, and before it. Internal to kernels/.

namespace headrace {
namespace {

class Ones {
 public:
  explicit Ones(uint64_t mask) : left_(mask) {}
  uint64_t take(uint64_t bit) {
    const uint64_t place = deposited(bit, left_);
    left_ &= ~(place ^ (place - 1));
    return place;
  }

 private:
  uint64_t left_;
};

}  // namespace
}  // namespace headrace
