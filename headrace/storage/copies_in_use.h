// SPDX-License-Identifier: Apache-2.0
// Which unpacked copies are in use, by whatever process, so that none of them is deleted to make
// room for another.
//
// One file in the cache folder, "unpacked-in-use", stands for all of them. Whoever uses a copy, or
// makes it, shares the lock of one byte of that file, whose place is the copy's number; whoever
// deletes a copy has that byte alone. So a source of ten thousand shards takes one descriptor. The
// locks belong to the open file: a child made by fork holds them, too, and a killed process none.
// Where files cannot be locked no copy is ever alone, so none is deleted; and in a folder that many
// users write to only the one who made the file can lock a byte alone, so the others delete none.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/storage/cache_directory.h"

namespace headrace {

// "unpacked-" and 16 hexadecimal digits.
std::string name_of_copy(uint64_t number);
std::optional<uint64_t> number_of_copy(std::string_view name);

// All members may be called from any thread.
class CopiesInUse {
 public:
  explicit CopiesInUse(CacheDirectory cache = CacheDirectory::of_user());
  ~CopiesInUse();
  CopiesInUse(const CopiesInUse&) = delete;
  CopiesInUse& operator=(const CopiesInUse&) = delete;

  const CacheDirectory& cache() const { return cache_; }
  // The copy is not deleted while this object lives, here or in a child. It need not be there: what
  // is looked for afterwards is there for good, or missing. Waits for who deletes it just now.
  void hold(const std::string& name);

  // What was deleted on behalf of the copies held here.
  struct Deleted {
    int64_t copies = 0;
    uint64_t bytes = 0;
  };
  void count_deleted(const Deleted& more) {
    copies_ += more.copies;
    bytes_ += more.bytes;
  }
  Deleted deleted() const { return {.copies = copies_, .bytes = bytes_}; }

 private:
  const CacheDirectory cache_;
  int descriptor_ = -1;
  std::atomic<int64_t> copies_{0};
  std::atomic<uint64_t> bytes_{0};
};

// Calls, while nobody can begin to use the copy. False, and no call, when somebody does already.
bool when_unused(const CacheDirectory& cache, const std::string& name,
                 const std::function<void()>& call);

}  // namespace headrace
