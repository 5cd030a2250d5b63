// SPDX-License-Identifier: Apache-2.0
// Decompresses gzip, zlib and Zstandard incrementally, in constant memory. Formats are detected by
// their first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "headrace/base/error.h"

namespace headrace {

enum class Packing : uint8_t { kNone, kGzip, kZlib, kZstd };
std::string_view name_of(Packing packing);  // "gzip"

// Detects the format from the first 4 bytes or more. An uncompressed file may begin with the same
// bytes by chance (zlib's are only two, for example "x^"), so callers should check for the
// uncompressed format first.
Packing packing_of(std::span<const uint8_t> first_bytes);

// Decompresses the concatenated streams of one file. For one thread.
class Unpacker {
 public:
  virtual ~Unpacker() = default;
  // REQUIRES: packing is not kNone.
  static std::unique_ptr<Unpacker> make(Packing packing);

  // The result of a call. Bytes produced before damage was found are valid.
  struct Step {
    size_t consumed = 0, produced = 0;
    bool ended = false;   // the end of this stream; another one may follow
    Result<void> result;  // HR0211, HR0213; without Error::where
  };
  // Continues until `in` is used up, `out` is full, the stream ends, or its bytes are invalid.
  virtual Step run(std::span<const uint8_t> in, std::span<uint8_t> out) = 0;
  virtual void restart() = 0;  // for the next stream
};

// HR0211, for what an Unpacker cannot detect: a file that ends too early.
Error damaged_packing(std::string what);

}  // namespace headrace
