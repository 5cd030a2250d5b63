// SPDX-License-Identifier: Apache-2.0
// Reads small pieces of a file at mostly increasing offsets, such as the headers that a scan reads.
//
// If the pieces are close together, one large read serves many of them; if they are far apart,
// little more is read than requested. For one thread; the file must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"

namespace headrace {

class FileWindow {
 public:
  // Fills all of `out` starting at `offset`, like File::read.
  using Read = std::function<Result<void>(uint64_t offset, std::span<uint8_t> out)>;
  static constexpr size_t kLargest = size_t{256} << 10, kSmallest = 512;
  // Larger gaps are skipped instead of read: from the page cache, both take microseconds, and a
  // disk reads about this much in the time of one seek.
  static constexpr uint64_t kFar = uint64_t{64} << 10;

  FileWindow(uint64_t size, Read read) : size_(size), read_(std::move(read)) {}

  // The bytes at `offset`: `count`, or fewer at the end. Valid until the next call.
  Result<std::span<const uint8_t>> at(uint64_t offset, size_t count);
  // Fills all of `out` starting at `offset`.
  Result<void> read(uint64_t offset, std::span<uint8_t> out);

 private:
  uint64_t size_;
  Read read_;
  Buffer buffer_;
  uint64_t begin_ = 0;  // offset of the buffer in the file
  uint64_t last_ = 0;   // the offset of the previous request
  size_t window_ = kSmallest;
};

}  // namespace headrace
