// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/file_window.h"

#include <algorithm>
#include <cstring>

namespace headrace {

Result<std::span<const uint8_t>> FileWindow::at(uint64_t offset, size_t count) {
  const uint64_t left = offset < size_ ? size_ - offset : 0;
  count = static_cast<size_t>(std::min<uint64_t>(count, left));
  if (count == 0) return std::span<const uint8_t>();
  const bool near = offset >= last_ && offset - last_ <= kFar;
  last_ = offset;
  if (offset < begin_ || offset - begin_ > buffer_.size() ||
      buffer_.size() - (offset - begin_) < count) {
    window_ = near ? std::min(kLargest, 4 * window_) : kSmallest;
    buffer_.resize(static_cast<size_t>(std::min<uint64_t>(std::max(window_, count), left)));
    begin_ = offset;
    if (Result<void> read = read_(offset, {buffer_.data(), buffer_.size()}); !read) {
      buffer_.resize(0);
      return std::move(read.error());
    }
  }
  return buffer_.bytes().subspan(static_cast<size_t>(offset - begin_), count);
}

Result<void> FileWindow::read(uint64_t offset, std::span<uint8_t> out) {
  if (out.empty()) return {};
  const Result<std::span<const uint8_t>> bytes = at(offset, out.size());
  if (!bytes) return bytes.error();
  if (bytes->size() < out.size()) return read_(offset, out);  // reports that the file has ended
  std::memcpy(out.data(), bytes->data(), out.size());
  return {};
}

}  // namespace headrace
