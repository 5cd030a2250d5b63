// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/bucket.h"

#include <utility>

namespace headrace {
namespace {

const ErrorCode kReadOnly{
    "HR0229", ErrorKind::kUnsupported, "storage is read-only",
    "Headrace cannot write to this storage (a web server, the Hugging Face Hub), only read from it. "
    "Write a local file, and upload it with the storage's own tools."};

}  // namespace

Error read_only_error(const std::string& path) {
  return {.code = &kReadOnly,
          .what = "cannot write to " + path,
          .where = Where{},
          .hint = "write a local file and upload it"};
}

Result<bool> store_in_bucket(const std::string& path, std::string content) {
  const Bucket* const bucket = bucket_of(path);
  if (!bucket) return read_only_error(path);
  return bucket->store(path, std::move(content));
}

}  // namespace headrace
