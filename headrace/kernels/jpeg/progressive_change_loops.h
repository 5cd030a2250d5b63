// SPDX-License-Identifier: Apache-2.0
// change() of progressive_scan_loops.h, one coefficient at a time. Included like
// progressive_scan_loops.h, and before it. Internal to kernels/.

namespace headrace {
namespace {

inline void change(int16_t* block, uint64_t corrected, uint64_t begun, uint64_t negative, int by) {
  for (; corrected; corrected &= corrected - 1) {
    int16_t& value = block[kIdctFromZigzag[std::countr_zero(corrected)]];
    const int sign = value >> 15;
    value = static_cast<int16_t>(value + ((by ^ sign) - sign));
  }
  for (; begun; begun &= begun - 1) {
    const bool minus = negative & begun & -begun;
    block[kIdctFromZigzag[std::countr_zero(begun)]] = static_cast<int16_t>(minus ? -by : by);
  }
}

}  // namespace
}  // namespace headrace
