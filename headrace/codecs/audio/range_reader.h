// SPDX-License-Identifier: Apache-2.0
// A file as a stream, for libraries that read streams. A failed read ends the stream, and the
// library then reports some other error; so callers first check error().
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/codecs/audio/audio_tags.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

class RangeReader {
 public:
  // The library sees only the bytes starting at `begin`.
  explicit RangeReader(ByteRanges file, uint64_t begin = 0)
      : file_(std::move(file)), begin_(std::min(begin, file_.size())) {}

  size_t read(void* to, size_t count) {
    count = static_cast<size_t>(std::min<uint64_t>(count, size() - at_));
    if (count == 0 || error_) return 0;
    const Result<std::span<const uint8_t>> bytes = file_.at(begin_ + at_, count);
    if (!bytes) {
      error_ = bytes.error();
      return 0;
    }
    std::memcpy(to, bytes->data(), bytes->size());
    at_ += bytes->size();
    return bytes->size();
  }
  // Like fseek(); false for an invalid position.
  bool seek(int64_t offset, int whence) {
    const auto whole = static_cast<int64_t>(size());
    const int64_t base = whence == SEEK_SET   ? 0
                         : whence == SEEK_CUR ? static_cast<int64_t>(at_)
                                              : whole;
    int64_t to = 0;
    if (__builtin_add_overflow(base, offset, &to) || to < 0 || to > whole) return false;
    at_ = static_cast<uint64_t>(to);
    return true;
  }
  uint64_t at() const { return at_; }
  uint64_t size() const { return file_.size() - begin_; }
  // Whether there are only tags and zeros starting at this position.
  Result<bool> holds_only_tags(uint64_t from) const {
    return only_end_tags_follow(file_, begin_ + from);
  }
  // The storage's error if a read failed.
  const std::optional<Error>& error() const { return error_; }

 private:
  ByteRanges file_;
  uint64_t begin_, at_ = 0;
  std::optional<Error> error_;
};

}  // namespace headrace
