// SPDX-License-Identifier: Apache-2.0
// Additional functions of storages in which folders are key prefixes. Const members may be called
// from any thread.
#pragma once

#include <string>

#include "headrace/base/error.h"
#include "headrace/storage/storage.h"

namespace headrace {

class Bucket {
 public:
  virtual ~Bucket() = default;

  // Like Storage::list(), but recursive: lists all files below a folder, and the folders
  // encountered, by relative path, with fewer requests than listing each folder. The order is
  // arbitrary; a folder may be missing or be listed twice.
  virtual Result<PathStatus> list_below(const std::string& path,
                                        const Storage::EachEntry& each) const = 0;
  // Stores a new file atomically. False if there is one already, which is kept. HR0229 if the
  // storage is read-only.
  virtual Result<bool> store(const std::string& path, std::string content) const = 0;
};

// HR0229: the storage is read-only.
Error read_only_error(const std::string& path);
// Bucket::store() if the path is in a bucket, otherwise HR0229.
Result<bool> store_in_bucket(const std::string& path, std::string content);

// The bucket that holds the path; null if its storage is not a bucket.
inline const Bucket* bucket_of(std::string_view path) {
  return dynamic_cast<const Bucket*>(&storage_of(path));
}

}  // namespace headrace
