// SPDX-License-Identifier: Apache-2.0
// Rows of 8 bits that become brighter. Any thread may call it.
#pragma once

#include <cstdint>

namespace headrace {

// out[i] = min(in[i] + by, 255). May read and write up to 63 bytes past `count`.
void template_brighten_row(const uint8_t* in, int by, int count, uint8_t* out);

}  // namespace headrace
