// SPDX-License-Identifier: Apache-2.0
// Deflate (RFC 1951) as gzip, zlib and zip wrap it, from untrusted bytes: the output is capped, and
// memory is taken as it fills up, never as a header says.
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

// One stream, fed and emptied piece by piece. Belongs to one thread.
class Inflater {
 public:
  explicit Inflater(DeflateWrap wrap);
  Inflater(Inflater&&) noexcept;
  Inflater& operator=(Inflater&&) noexcept;
  ~Inflater();

  struct Step {
    size_t consumed = 0, produced = 0;
    bool ended = false;  // with this stream; gzip files may hold another one after it
  };
  // Goes on until `in` is used up, `out` is full, or the stream ends. HR0422 for damaged bytes,
  // checksums included; Where::offset is that in `in`.
  Result<Step> run(std::span<const uint8_t> in, std::span<uint8_t> out);
  void restart();  // for the next stream, of the same wrap
  // Bytes that the last run() put out, also where it met damage then: those are good.
  size_t produced() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct InflateLimits {
  uint64_t max_bytes = uint64_t{4} << 30;
  // Beyond the first 64 MiB, of output to input. Deflate can do 1032; data of records never does.
  uint64_t max_ratio = 256;
  uint64_t most(uint64_t stored_bytes) const;
};

// All of a stream, of gzip all streams that follow each other. HR0422, or HR0423 when it grows
// beyond the limits; Where has the offset, and of files the path.
Result<void> inflate_bytes(std::span<const uint8_t> in, DeflateWrap wrap,
                           const InflateLimits& limits, Buffer& out);
Result<void> inflate_file(const File& file, uint64_t offset, uint64_t bytes, DeflateWrap wrap,
                          const InflateLimits& limits, Buffer& out);

// One stream whose size is known: anything but exactly out.size() bytes is HR0422.
Result<void> inflate_into(std::span<const uint8_t> in, DeflateWrap wrap, std::span<uint8_t> out);

}  // namespace headrace
