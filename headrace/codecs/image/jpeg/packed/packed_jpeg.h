// SPDX-License-Identifier: Apache-2.0
// A JPEG file in a form made for decoding speed, plus the data that restores the file byte for byte
// (docs/spec/pack-format.md). The decoder of each form is an ordinary codec; this header has the
// conversion in both directions. Any thread may call it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "headrace/base/error.h"

namespace headrace {

enum class PackLevel : uint8_t {
  kFast,   // quantized coefficients as bit planes: about a tenth larger than the JPEG, fastest to
           // decode
  kDense,  // the entropy-coded data with a row index: the JPEG's size, slower to decode
};

// Verifies the result: unpacking it must give the same bytes. If an error is returned, store the
// file unchanged; `what` is a short reason, used for statistics.
Result<std::vector<uint8_t>> pack_jpeg(std::span<const uint8_t> jpeg, PackLevel level);
// Restores the original file. The bytes may be hostile.
Result<std::vector<uint8_t>> unpack_jpeg(std::span<const uint8_t> packed);
// Whether the bytes have the signature of either level.
bool is_packed_jpeg(std::span<const uint8_t> first_bytes);

// The dense form of a packed JPEG: an ordinary baseline file, with the row index that lets our
// decoder start at the window, and the data that restores the original file
// (docs/spec/dense-jpeg.md). As small as a JPEG file. Its decoder is the codec "dense_jpeg".
//
// Verifies the result: the original file is reconstructed and compared. An error's `what` is a
// short reason, used for statistics.
Result<std::vector<uint8_t>> dense_from_jpeg(std::span<const uint8_t> jpeg);
// Restores the original file. The bytes may be hostile; HR0327 if they are damaged.
Result<std::vector<uint8_t>> jpeg_from_dense(std::span<const uint8_t> stored);
// The baseline file inside, and its row index, which may be empty. Empty if the bytes are damaged.
// Borrows the bytes.
struct DenseJpegView {
  std::span<const uint8_t> jpeg, row_index;
};
std::optional<DenseJpegView> view_of_dense(std::span<const uint8_t> stored);
// Whether the bytes have the signature of dense_from_jpeg()'s output. Needs the first 16 bytes.
bool is_dense_jpeg(std::span<const uint8_t> first_bytes);

}  // namespace headrace
