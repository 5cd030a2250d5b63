// SPDX-License-Identifier: Apache-2.0
// Tables with NEON. The scalar reference is in table_rows.cc. A lookup instruction covers 64
// entries, and its extension (TBX) keeps bytes whose index is out of range: four of them cover any
// table. Internal to kernels/.

#include <arm_neon.h>

namespace headrace::neon {
namespace {

void look_up(const uint8_t table[256], const TableForm&, const uint8_t* in, int count,
             uint8_t* out) {
  const uint8x16x4_t first = vld1q_u8_x4(table), second = vld1q_u8_x4(table + 64),
                     third = vld1q_u8_x4(table + 128), fourth = vld1q_u8_x4(table + 192);
  const auto past = [](uint8x16_t at, int reached) {
    return vsubq_u8(at, vdupq_n_u8(static_cast<uint8_t>(reached)));
  };
  for (int i = 0; i < count; i += 16) {
    const uint8x16_t at = vld1q_u8(in + i);
    uint8x16_t value = vqtbl4q_u8(first, at);
    value = vqtbx4q_u8(value, second, past(at, 64));
    value = vqtbx4q_u8(value, third, past(at, 128));
    vst1q_u8(out + i, vqtbx4q_u8(value, fourth, past(at, 192)));
  }
}

}  // namespace
}  // namespace headrace::neon
