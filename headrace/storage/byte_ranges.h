// SPDX-License-Identifier: Apache-2.0
// Bytes by position: of memory, or of an open file, of which only requested ranges are read. So a
// clip of a long film costs only its own packets.
//
// A small value; copies of one share what it has read, so they belong to one thread at a time.
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
  // Limit of at() and keep() for one call; more is HR0206: no table has as many bytes.
  static constexpr uint64_t kMost = uint64_t{256} << 20;

  ByteRanges() = default;
  // The memory stays the caller's.
  ByteRanges(const uint8_t* data, size_t size) : memory_(data, size), size_(size) {}
  template <class Bytes>
    requires std::convertible_to<const Bytes&, std::span<const uint8_t>>
  ByteRanges(const Bytes& bytes) : memory_(bytes), size_(memory_.size()) {}
  explicit ByteRanges(std::shared_ptr<const File> file);

  uint64_t size() const { return size_; }
  // The bytes there, at most `count` and fewer only at the end. Of a file valid until the next
  // call, and readable for Buffer::kPadding bytes more.
  Result<std::span<const uint8_t>> at(uint64_t offset, uint64_t count) const;
  // The same, valid for as long as `memory`, which a file's are read into.
  Result<std::span<const uint8_t>> keep(uint64_t offset, uint64_t count, Buffer& memory) const;
  // Fills all of `out`. REQUIRES: it lies inside.
  Result<void> read(uint64_t offset, std::span<uint8_t> out) const;

 private:
  struct Opened;
  std::span<const uint8_t> memory_;
  uint64_t size_ = 0;
  std::shared_ptr<Opened> opened_;  // shared: by copies; null: memory
};

}  // namespace headrace
