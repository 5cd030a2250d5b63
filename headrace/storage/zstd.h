// SPDX-License-Identifier: Apache-2.0
// Compresses and decompresses Zstandard (RFC 8878) in memory. Input is untrusted: the caller limits
// the output, and sizes stated in headers are first checked against that limit.
//
// Functions that decompress return libzstd's error message, empty on success; callers include the
// message in their own errors. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"

namespace headrace {

// Returns one frame, whose header states the size. Empty if libzstd runs out of memory.
std::vector<uint8_t> zstd_compressed(std::span<const uint8_t> bytes, int level);

// The size stated in the first frame's header; empty if none is stated, or the header is invalid.
std::optional<uint64_t> zstd_content_size(std::span<const uint8_t> bytes);

// Decompresses all frames, which must give exactly out.size() bytes.
std::string_view zstd_decompress_into(std::span<const uint8_t> bytes, std::span<uint8_t> out);

// Decompresses all frames, up to `most` bytes. `out` is undefined after a failure.
std::string_view zstd_decompress(std::span<const uint8_t> bytes, uint64_t most, Buffer& out);

}  // namespace headrace
