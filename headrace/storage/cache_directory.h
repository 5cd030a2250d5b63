// SPDX-License-Identifier: Apache-2.0
// Where indexes are kept between runs: $HEADRACE_CACHE, or $XDG_CACHE_HOME/headrace, or
// ~/.cache/headrace. An empty HEADRACE_CACHE disables the cache.
//
// A cache may be missing, unwritable, full, or filled by another user: none of that is an error,
// and readers must check every byte of an entry. Entries appear atomically, by a rename. All
// members may be called from any thread and from several processes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "headrace/base/buffer.h"

namespace headrace {

// The mapped bytes of an entry. They stay valid and unchanged until destruction, even if the entry
// is replaced or deleted meanwhile: entries are never modified in place (Note [Why a kept index is
// mapped]).
class MappedEntry {
 public:
  MappedEntry(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  ~MappedEntry();
  MappedEntry(const MappedEntry&) = delete;
  MappedEntry& operator=(const MappedEntry&) = delete;
  std::span<const uint8_t> bytes() const { return {data_, size_}; }

 private:
  const uint8_t* data_;
  size_t size_;
};

// Whether files of this file system (statfs's f_type) may be mapped: not if it is a network file
// system.
bool may_be_mapped(int64_t file_system);

class CacheDirectory {
 public:
  // The user's cache folder, from the current environment.
  static CacheDirectory of_user();
  // Empty: no cache.
  explicit CacheDirectory(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // The path of an entry; empty without a cache.
  std::string path_of(const std::string& name) const {
    return path_.empty() ? std::string() : path_ + "/" + name;
  }
  // Creates the folder if it is missing. If that fails, the next operation fails.
  void make() const;
  // Whether only this user or the folder's owner can have written the entry: either no other user
  // may write to the folder, or this user owns the entry. Entries of other users in a shared folder
  // are ignored.
  bool trusts(const std::string& name) const;
  // False if there is no such entry, or it cannot be read or trusted.
  bool read(const std::string& name, Buffer& out) const;
  // A large entry, mapped: all processes of a machine that use it share its memory. Null if there
  // is no entry of at least `min_bytes`, or it cannot be read or trusted, or is on a network file
  // system.
  std::shared_ptr<const MappedEntry> map(const std::string& name, uint64_t min_bytes) const;
  // Replaces the entry with these parts, concatenated. False if that fails; then no temporary file
  // remains.
  bool write(const std::string& name, std::span<const std::span<const uint8_t>> parts) const;
  bool write(const std::string& name, std::span<const uint8_t> bytes) const {
    return write(name, std::span(&bytes, 1));
  }

 private:
  std::string path_;
};

}  // namespace headrace
