// SPDX-License-Identifier: Apache-2.0
// Reads a text file through a window that slides from record to record, and grows to the longest
// record.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/sources/source.h"
#include "headrace/storage/file.h"

namespace headrace {

class RecordWindow {
 public:
  static constexpr size_t kMaxRecordBytes = size_t{64} << 20;

  RecordWindow(const File& file, const Progress& progress, size_t window = size_t{1} << 20)
      : file_(file), progress_(progress), buffer_(window) {}

  // The current window; the caller may write into it.
  char* begin() { return reinterpret_cast<char*>(buffer_.data()) + begin_; }
  char* end() { return reinterpret_cast<char*>(buffer_.data()) + end_; }
  uint64_t offset() const { return read_ - (end_ - begin_); }  // of begin()
  // the window reaches the end of the file
  bool at_end() const { return read_ == file_.size(); }
  void take(size_t bytes) { begin_ += bytes; }

  // Reads more bytes after end(), which may move the window. Throws Exception if they cannot be
  // read; false if a record exceeds kMaxRecordBytes. REQUIRES: !at_end().
  bool extend() {
    const size_t kept = end_ - begin_;
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, kept);
    } else if (kept == buffer_.size()) {
      if (kept >= kMaxRecordBytes) return false;
      Buffer larger(kept * 2);
      std::memcpy(larger.data(), buffer_.data(), kept);
      buffer_ = std::move(larger);
    }
    begin_ = 0;
    end_ = kept;
    const size_t count = std::min<uint64_t>(buffer_.size() - kept, file_.size() - read_);
    Result<void> done = file_.read(read_, {buffer_.data() + kept, count});
    if (!done) throw Exception(std::move(done.error()));
    read_ += count;
    end_ += count;
    if (progress_) progress_(static_cast<int64_t>(read_), static_cast<int64_t>(file_.size()));
    return true;
  }

 private:
  const File& file_;
  const Progress& progress_;
  Buffer buffer_;
  size_t begin_ = 0, end_ = 0;
  uint64_t read_ = 0;
};

}  // namespace headrace
