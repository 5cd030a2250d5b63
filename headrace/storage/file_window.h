// SPDX-License-Identifier: Apache-2.0
// Small pieces of a file at mostly increasing positions: headers that a scan reads.
//
// If they are close together a large read serves many of them; if they are far apart little more is
// read than requested. Belongs to one thread; the file must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"

namespace headrace {

class FileWindow {
 public:
  // Fills all of `out` from there, as File::read does.
  using Read = std::function<Result<void>(uint64_t offset, std::span<uint8_t> out)>;
  static constexpr size_t kLargest = size_t{256} << 10, kSmallest = 512;
  // Larger gaps are not worth reading through: from the page cache either way takes microseconds,
  // and a disk reads about this much during one seek.
  static constexpr uint64_t kFar = uint64_t{64} << 10;

  FileWindow(uint64_t size, Read read) : size_(size), read_(std::move(read)) {}

  // The bytes there, at most `count` and fewer only at the end. Valid until the next call.
  Result<std::span<const uint8_t>> at(uint64_t offset, size_t count);
  // Fills all of `out` from there.
  Result<void> read(uint64_t offset, std::span<uint8_t> out);

 private:
  uint64_t size_;
  Read read_;
  Buffer buffer_;
  uint64_t begin_ = 0;  // of the buffer in the file
  uint64_t last_ = 0;   // the position requested before
  size_t window_ = kSmallest;
};

}  // namespace headrace
