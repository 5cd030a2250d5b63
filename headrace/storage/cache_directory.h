// SPDX-License-Identifier: Apache-2.0
// Where indexes are kept between runs: $HEADRACE_CACHE, or $XDG_CACHE_HOME/headrace, or
// ~/.cache/headrace. An empty HEADRACE_CACHE means none.
//
// A cache may be missing, unwritable, full, or filled by somebody else: none of that is an error,
// and whoever reads an entry must check every byte of it. Entries appear whole, by a rename.
// All members may be called from any thread and from several processes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "headrace/base/buffer.h"

namespace headrace {

class CacheDirectory {
 public:
  // The user's, by the environment as it is now.
  static CacheDirectory of_user();
  // Empty: no cache.
  explicit CacheDirectory(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // Where an entry lies; empty where there is no cache.
  std::string path_of(const std::string& name) const {
    return path_.empty() ? std::string() : path_ + "/" + name;
  }
  // Makes the folder, if it is not there. Whether it could, shows in whatever comes next.
  void make() const;
  // Whether only this user, or who owns the folder, can have written the entry: nobody else may
  // write to the folder, or the entry is this user's. Others' entries in a shared folder are as
  // if they were not there.
  bool trusts(const std::string& name) const;
  // False when there is no such entry, or it is not to be had or trusted.
  bool read(const std::string& name, Buffer& out) const;
  // Replaces the entry. False when that was not possible; nothing is left behind then.
  bool write(const std::string& name, std::span<const uint8_t> bytes) const;

 private:
  std::string path_;
};

}  // namespace headrace
