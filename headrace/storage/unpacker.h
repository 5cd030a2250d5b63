// SPDX-License-Identifier: Apache-2.0
// Decompresses bytes piece by piece, in constant memory: gzip, zlib and Zstandard, distinguished by
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

// From the first 4 bytes or more. A plain file may begin with the same bytes by accident (those of
// zlib are only two, for example "x^"), so a caller that knows its plain format checks for that
// first.
Packing packing_of(std::span<const uint8_t> first_bytes);

// The streams of one file, one after the other. Belongs to one thread.
class Unpacker {
 public:
  virtual ~Unpacker() = default;
  // REQUIRES: packing is not kNone.
  static std::unique_ptr<Unpacker> make(Packing packing);

  // The result of a call. Bytes produced before damage was found are valid.
  struct Step {
    size_t consumed = 0, produced = 0;
    bool ended = false;   // this stream; another one may follow
    Result<void> result;  // HR0211, HR0213; without a place
  };
  // Continues until `in` is used up, `out` is full, the stream ends, or its bytes are invalid.
  virtual Step run(std::span<const uint8_t> in, std::span<uint8_t> out) = 0;
  virtual void restart() = 0;  // for the next stream
};

// HR0211, for what an Unpacker cannot detect: a file that ends too early.
Error damaged_packing(std::string what);

}  // namespace headrace
