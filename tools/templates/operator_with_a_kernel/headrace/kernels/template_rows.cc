// SPDX-License-Identifier: Apache-2.0
#ifndef HEADRACE_LEVEL

#include "headrace/kernels/template_rows.h"

#define HEADRACE_KERNEL "headrace/kernels/template_rows.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {

void template_brighten_row(const uint8_t* in, int by, int count, uint8_t* out) {
  HEADRACE_BY_LEVEL(brighten)(in, by, count, out);
}

}  // namespace headrace

#else  // at each SIMD level

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

void brighten(const uint8_t* in, int by, int count, uint8_t* out) {
  for (int i = 0; i < count; i += kLanes) {
    StoreAsBytes(out + i, Min(Add(LoadBytesAsInts(in + i), Set(by)), Set(255)));
  }
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
