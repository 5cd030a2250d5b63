// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/huffman.h"

namespace headrace {

Unstuffed unstuff(std::span<const uint8_t> in, uint8_t* out) {
  size_t read = 0, written = 0;
  while (read < in.size()) {
    const uint8_t byte = in[read];
    if (byte == 0xff) {
      if (read + 1 == in.size() || in[read + 1] != 0) break;
      ++read;
    }
    ++read;
    out[written++] = byte;
  }
  return {read, written};
}

}  // namespace headrace
