// SPDX-License-Identifier: Apache-2.0
// A JPEG file in a form made for decoding speed: its quantized coefficients as bit planes,
// losslessly, plus the data that restores the file byte for byte (docs/spec/pack-format.md). The
// decoder of that form is an ordinary codec; this header has the conversion in both directions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/base/error.h"

namespace headrace {

enum class PackLevel : uint8_t {
  kFast,   // bit planes: about a tenth larger than the JPEG, fastest to decode
  kDense,  // the entropy-coded data with a row index: the JPEG's size, slower to decode
};

// Verifies the result: unpacking it must give the same bytes. If an error is returned, store the
// file unchanged; `what` is a short reason, used for statistics.
Result<std::vector<uint8_t>> pack_jpeg(std::span<const uint8_t> jpeg, PackLevel level);
// Restores the original file. The bytes may be hostile.
Result<std::vector<uint8_t>> unpack_jpeg(std::span<const uint8_t> packed);
// Whether the bytes have the signature of either level.
bool is_packed_jpeg(std::span<const uint8_t> first_bytes);

}  // namespace headrace
