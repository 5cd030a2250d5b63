// SPDX-License-Identifier: Apache-2.0
// Zstandard (RFC 8878), into memory and out of it. Input is untrusted: the output is capped by the
// caller, and what a header claims is checked against that first.
//
// The callers' own errors say what was damaged; the reasons here are libzstd's words, and empty
// when all is well. Any thread may call these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"

namespace headrace {

// One frame, whose header states its size. Empty if libzstd runs out of memory.
std::vector<uint8_t> zstd_compressed(std::span<const uint8_t> bytes, int level);

// The size stated in the first frame's header; none if it has none, or is not a header.
std::optional<uint64_t> zstd_content_size(std::span<const uint8_t> bytes);

// Exactly out.size() bytes, of all frames.
std::string_view zstd_decompress_into(std::span<const uint8_t> bytes, std::span<uint8_t> out);

// The contents of all frames, up to `most` bytes. `out` is undefined after a failure.
std::string_view zstd_decompress(std::span<const uint8_t> bytes, uint64_t most, Buffer& out);

}  // namespace headrace
