// SPDX-License-Identifier: Apache-2.0
// Random access to bytes in memory or in an open file. Only requested ranges of a file are read:
// decoding a clip of a long video reads only the packets of that clip.
//
// Cheap to copy; copies share the buffered bytes, so only one thread at a time may use them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"

namespace headrace {

class File;

class ByteRanges {
 public:
  // Limit of at() and keep() per call, otherwise HR0206: no table is this large.
  static constexpr uint64_t kMax = uint64_t{256} << 20;

  ByteRanges() = default;
  // The caller owns the memory.
  ByteRanges(const uint8_t* data, size_t size) : memory_(data, size), size_(size) {}
  template <class Bytes>
    requires std::convertible_to<const Bytes&, std::span<const uint8_t>>
  ByteRanges(const Bytes& bytes) : memory_(bytes), size_(memory_.size()) {}
  explicit ByteRanges(std::shared_ptr<const File> file);

  uint64_t size() const { return size_; }
  // The bytes at `offset`: `count`, or fewer at the end. If they are from a file, they are valid
  // until the next call, and Buffer::kPadding bytes after them are readable.
  Result<std::span<const uint8_t>> at(uint64_t offset, uint64_t count) const;
  // The same, valid while `memory` is unchanged; bytes of a file are read into it.
  Result<std::span<const uint8_t>> keep(uint64_t offset, uint64_t count, Buffer& memory) const;
  // Fills all of `out`. REQUIRES: the range is within size().
  Result<void> read(uint64_t offset, std::span<uint8_t> out) const;

 private:
  struct Opened;
  std::span<const uint8_t> memory_;
  uint64_t size_ = 0;
  std::shared_ptr<Opened> opened_;  // shared: by copies; null: in memory
};

}  // namespace headrace
