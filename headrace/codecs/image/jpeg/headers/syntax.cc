// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/headers/syntax.h"

#include <algorithm>

#include "headrace/codecs/image/jpeg/headers/frame.h"

namespace headrace {

bool JpegTables::take_huffman(std::span<const uint8_t> body) {
  while (!body.empty()) {
    if (body.size() < 17) return false;
    const int kind = body[0] >> 4, slot = body[0] & 15;
    if (kind > 1 || slot > 3) return false;
    HuffmanSpec& spec = (kind ? ac : dc)[slot];
    std::copy_n(body.data() + 1, 16, spec.counts.begin());
    size_t symbols = 0;
    for (const uint8_t count : spec.counts) symbols += count;
    if (symbols > 256 || symbols > body.size() - 17) return false;
    spec.symbols.fill(0);
    std::copy_n(body.data() + 17, symbols, spec.symbols.begin());
    (kind ? ac_seen : dc_seen) |= 1 << slot;
    body = body.subspan(17 + symbols);
  }
  return true;
}

bool JpegTables::take_quantization(std::span<const uint8_t> body) {
  while (!body.empty()) {
    const int wide = body[0] >> 4, slot = body[0] & 15;
    const size_t bytes = wide ? 128 : 64;
    if (wide > 1 || slot > 3 || body.size() < 1 + bytes) return false;
    for (int k = 0; k < 64; ++k) {
      const int value = wide ? int(big_u16(body, 1 + 2 * k)) : body[1 + k];
      quantization[slot][kNaturalFromZigzag[k]] = uint16_t(value);
    }
    quantization_seen |= 1 << slot;
    body = body.subspan(1 + bytes);
  }
  return true;
}

}  // namespace headrace
