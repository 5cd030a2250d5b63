// SPDX-License-Identifier: Apache-2.0
// Remote files whose folders are key prefixes.
#pragma once

#include <string>

#include "headrace/storage/bucket.h"
#include "headrace/storage/remote/remote_files.h"

namespace headrace {

class BucketFiles final : public RemoteFiles, public Bucket {
 public:
  using RemoteFiles::RemoteFiles;

  Result<PathStatus> list_below(const std::string& path, const EachEntry& each) const override;
  Result<bool> store(const std::string& path, std::string content) const override;
};

}  // namespace headrace
