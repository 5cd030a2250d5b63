// SPDX-License-Identifier: Apache-2.0
// The files that records in memory were read from, and whether they have changed since.
//
// Note [What a change of files does to records in memory]: nothing, they are as they were read.
// That is the purpose of keeping them, but a dataset that is rewritten between two epochs would go
// on training on the old one without a word. So at the start of an epoch files are looked at, at
// most kMostLooks of them and others each time: a dataset that was written again is noticed at
// once, a single file among many within a few epochs. Files that are gone are not missed. Files of
// asynchronous storages are not looked at: each look would be a request.
//
// Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// The file that contains a record's field; empty if no file can be inspected.
std::string file_of(const Source& source, int64_t record, size_t field);
// Digest of a file's current state. Empty if there is no file, or if checking would have to wait.
std::optional<uint64_t> digest_of_file(const std::string& path);

class FilesRead {
 public:
  static constexpr size_t kMostLooks = 2000;

  // The files that the wanted fields (by schema field) of all records are in, as they are now.
  FilesRead(SourcePtr source, const std::vector<bool>& wanted);

  // The path of a file that was replaced or has other times. Checks the next `most_looks` files.
  std::optional<std::string> changed(size_t most_looks = kMostLooks);
  size_t size() const { return files_.size(); }

 private:
  struct File {
    int64_t record;  // a record in it
    size_t field;
    uint64_t digest;  // of what it was
  };
  const SourcePtr source_;
  std::vector<File> files_;
  size_t next_ = 0;
};

}  // namespace headrace
