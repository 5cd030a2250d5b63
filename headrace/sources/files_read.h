// SPDX-License-Identifier: Apache-2.0
// Detects changes of the files from which records in memory were read.
//
// Note [What a change of files does to records in memory]: nothing; the records keep the contents
// that were read. That is the purpose of keeping records in memory, but after a dataset is
// rewritten between two epochs, training would silently continue on the old contents. So at the
// start of an epoch files are checked (stat), at most kMaxLooks and different ones each time: a
// rewritten dataset is noticed immediately, a single file among many within a few epochs. Deleted
// files are ignored. Files of asynchronous storages are not checked: each check would be a request.
//
// For one thread.
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
// Digest of a file's current status (not its content). Empty if there is no file, or if its storage
// is asynchronous.
std::optional<uint64_t> digest_of_file(const std::string& path);

class FilesRead {
 public:
  static constexpr size_t kMaxLooks = 2000;

  // Finds the files that contain the wanted fields (a flag per schema field) of all records, and
  // stores their current status.
  FilesRead(SourcePtr source, const std::vector<bool>& wanted);

  // Checks the next `max_looks` files. Returns the path of the first that was replaced or
  // modified.
  std::optional<std::string> changed(size_t max_looks = kMaxLooks);
  size_t size() const { return files_.size(); }

 private:
  struct File {
    int64_t record;  // a record in it
    size_t field;
    uint64_t digest;  // at construction
  };
  const SourcePtr source_;
  std::vector<File> files_;
  size_t next_ = 0;
};

}  // namespace headrace
