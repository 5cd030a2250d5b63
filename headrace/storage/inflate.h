// SPDX-License-Identifier: Apache-2.0
// Decompresses Deflate (RFC 1951) as used in gzip, zlib and zip. The input is untrusted: the output
// is limited, and memory grows with the actual output, not with sizes declared in a header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/storage/file.h"

namespace headrace {

enum class DeflateWrap : uint8_t { kNone, kZlib, kGzip };

// Decompresses one stream incrementally. For one thread.
class Inflater {
 public:
  explicit Inflater(DeflateWrap wrap);
  Inflater(Inflater&&) noexcept;
  Inflater& operator=(Inflater&&) noexcept;
  ~Inflater();

  struct Step {
    size_t consumed = 0, produced = 0;
    bool ended = false;  // the end of this stream; in gzip files another one may follow
  };
  // Continues until `in` is used up, `out` is full, or the stream ends. HR0422 for damaged bytes,
  // including checksums; Where::offset is the offset in `in`.
  Result<Step> run(std::span<const uint8_t> in, std::span<uint8_t> out);
  void restart();  // for the next stream, in the same format
  // Bytes produced by the last run(), even if it then found damage: those are valid.
  size_t produced() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct InflateLimits {
  uint64_t max_bytes = uint64_t{4} << 30;
  // Ratio of output to input, beyond the first 64 MiB. Deflate can reach 1032; real data never
  // does.
  uint64_t max_ratio = 256;
  uint64_t most(uint64_t stored_bytes) const;
};

// Decompresses a whole stream; for gzip, all concatenated streams. HR0422, or HR0423 if it grows
// beyond the limits; Where has the offset, and for files the path.
Result<void> inflate_bytes(std::span<const uint8_t> in, DeflateWrap wrap,
                           const InflateLimits& limits, Buffer& out);
Result<void> inflate_file(const File& file, uint64_t offset, uint64_t bytes, DeflateWrap wrap,
                          const InflateLimits& limits, Buffer& out);

// Decompresses one stream of known size: anything but exactly out.size() bytes is HR0422.
Result<void> inflate_into(std::span<const uint8_t> in, DeflateWrap wrap, std::span<uint8_t> out);

}  // namespace headrace
