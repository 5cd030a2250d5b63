// SPDX-License-Identifier: Apache-2.0
// Files in any storage: each function uses the storage of the path's scheme (storage.h). All const
// members may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/storage/storage.h"
#include "headrace/storage/storage_errors.h"

namespace headrace {

class File {
 public:
  static constexpr int kRetries = kReadRetries;

  // `known`: the expected identity; a file with another one is HR0208.
  static Result<File> open(const std::string& path, const FileIdentity* known = nullptr);
  // For one thread that reads the file once, sequentially and in small pieces (scanned_file.h).
  static Result<File> open_to_scan(const std::string& path);

  // A file implemented by a class that is not its storage's own.
  static File around(std::string path, std::unique_ptr<OpenFile> open) {
    return {std::move(path), std::move(open)};
  }

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // when the file was opened
  // The piece, for callers that request many at once; its identity is set only for an asynchronous
  // storage.
  FilePiece piece(uint64_t offset, uint64_t bytes) const {
    return {path_, offset, bytes, open_->known()};
  }
  bool is_async() const { return open_->known().has_value(); }
  // Fills all of `out`. If the file ends before that, it is a data error.
  Result<void> read(uint64_t offset, std::span<uint8_t> out) const {
    return open_->read(offset, out);
  }
  // Reads contiguous bytes into several buffers, with one system call if possible.
  Result<void> read(uint64_t offset, std::span<const std::span<uint8_t>> parts) const {
    return open_->read(offset, parts);
  }
  // Hints that these bytes will be read soon; may do nothing.
  void will_read(uint64_t offset, uint64_t bytes) const { open_->will_read(offset, bytes); }
  // As in OpenFile.
  std::optional<std::span<const uint8_t>> held(uint64_t offset, uint64_t bytes) const {
    return open_->held(offset, bytes);
  }
  size_t held_bytes() const { return open_->held_bytes(); }
  // Distinguishes this file from one that replaces or changes it.
  Result<FileIdentity> identity() const { return open_->identity(); }

 private:
  File(std::string path, std::unique_ptr<OpenFile> open)
      : path_(std::move(path)), open_(std::move(open)), size_(open_->size()) {}

  std::string path_;
  std::unique_ptr<OpenFile> open_;
  uint64_t size_ = 0;
};

// The whole file. `out` keeps its memory if it is large enough; its contents are undefined after an
// error.
Result<void> read_file(const std::string& path, Buffer& out, const ReadLimits& limits = {});

// Reads the first bytes of the file: fills `out`, or reads to the end if the file is shorter.
// Returns how many bytes.
Result<size_t> read_prefix(const std::string& path, std::span<uint8_t> out);

// Whether the path is a file that begins with these bytes, at most 16.
bool file_begins_with(const std::string& path, std::string_view bytes);

Result<FileIdentity> identity_of(const std::string& path);
// Whether a path is a folder; follows links. Also false if it is not accessible.
bool is_folder(const std::string& path);
bool is_file(const std::string& path);  // a regular file
bool is_there(const std::string& path);
// As in PathStatus; 0 if the path is not accessible.
int64_t status_changed_ns(const std::string& path);

}  // namespace headrace
