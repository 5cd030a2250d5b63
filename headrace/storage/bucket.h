// SPDX-License-Identifier: Apache-2.0
// Functions of storages whose folders are prefixes of keys, beyond those of every storage. Const
// members may be called from any thread.
#pragma once

#include <string>

#include "headrace/base/error.h"
#include "headrace/storage/storage.h"

namespace headrace {

class Bucket {
 public:
  virtual ~Bucket() = default;

  // As Storage::list(), for all files below a folder and the folders that were met, by their paths
  // from it, with fewer questions than folder by folder: in no order, some folders not at all,
  // others twice.
  virtual Result<PathStatus> list_below(const std::string& path,
                                        const Storage::EachEntry& each) const = 0;
  // Stores a new file there, completely or not at all. False if there is one already, which is
  // kept. HR0229 where the storage can only be read.
  virtual Result<bool> store(const std::string& path, std::string content) const = 0;
};

// HR0229: nothing can be put there.
Error stores_nothing_error(const std::string& path);
// Bucket::store() where the path lies in a bucket, else HR0229.
Result<bool> store_in_bucket(const std::string& path, std::string content);

// Where the path lies, if that is one.
inline const Bucket* bucket_of(std::string_view path) {
  return dynamic_cast<const Bucket*>(&storage_of(path));
}

}  // namespace headrace
