// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/byte_ranges.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "headrace/storage/file.h"
#include "headrace/storage/file_window.h"

namespace headrace {

struct ByteRanges::Opened {
  explicit Opened(std::shared_ptr<const File> opened)
      : file(std::move(opened)),
        window(file->size(), [this](uint64_t offset, std::span<uint8_t> out) {
          return file->read(offset, out);
        }) {}
  const std::shared_ptr<const File> file;  // shared: with the record's field
  FileWindow window;
};

ByteRanges::ByteRanges(std::shared_ptr<const File> file)
    : size_(file->size()), opened_(std::make_shared<Opened>(std::move(file))) {}

Result<std::span<const uint8_t>> ByteRanges::at(uint64_t offset, uint64_t count) const {
  offset = std::min(offset, size_);
  count = std::min(count, size_ - offset);
  if (!opened_) return memory_.subspan(size_t(offset), size_t(count));
  if (const auto held = opened_->file->held(offset, count)) return *held;
  if (count > kMax) return above_cap_error(opened_->file->path(), count, kMax);
  return opened_->window.at(offset, size_t(count));
}

Result<std::span<const uint8_t>> ByteRanges::keep(uint64_t offset, uint64_t count,
                                                  Buffer& memory) const {
  if (!opened_) return at(offset, count);
  offset = std::min(offset, size_);
  count = std::min(count, size_ - offset);
  if (const auto held = opened_->file->held(offset, count)) return *held;
  if (count > kMax) return above_cap_error(opened_->file->path(), count, kMax);
  memory.resize(size_t(count));
  if (Result<void> read = this->read(offset, {memory.data(), memory.size()}); !read) {
    return std::move(read.error());
  }
  return memory.bytes();
}

Result<void> ByteRanges::read(uint64_t offset, std::span<uint8_t> out) const {
  if (out.empty()) return {};
  if (opened_) return opened_->file->read(offset, out);
  std::memcpy(out.data(), memory_.data() + offset, out.size());
  return {};
}

}  // namespace headrace
