// SPDX-License-Identifier: Apache-2.0
// Finds the entries of an LMDB environment that are records, the location of their values, and
// their keys.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/formats/shards/container_index.h"
#include "headrace/storage/file_set.h"

namespace headrace {

struct LmdbOptions {
  std::string database;  // empty: the main database, or the only named one
  bool recover = false;  // use the tree of a single valid meta page
};

// A record's extent begins at its node if the value is in a leaf page, or at the page header if the
// value has overflow pages. Tallies: "left out: KEY", "named databases", "integer keys",
// "recovered". Errors: HR0480, HR0481, HR0483; damage is HR0482.
Result<void> scan_lmdb(const File& file, const LmdbOptions& options, ContainerIndex& out,
                       const std::function<void(uint64_t)>& passed);

// HR0482, at the start of a record.
Error bad_lmdb_page(std::string what);

// A key for display: text unchanged, a number in databases with integer keys, otherwise its bytes.
std::string shown_lmdb_key(std::span<const uint8_t> key, bool integers);

struct LmdbLeaves;

// Looks up the keys of values in overflow pages, because these keys are in the leaf pages. The
// first lookup builds a table of the environment's leaf pages, 16 bytes for each, which is less
// than a byte per record. All members may be called from any thread.
class LmdbKeys {
 public:
  LmdbKeys(LmdbOptions options, size_t files);
  ~LmdbKeys();
  // The key of a record of the file; empty if it cannot be read.
  std::optional<std::string> key(const FileSet& files, size_t file, int64_t record,
                                 bool integers) const;

 private:
  const LmdbLeaves* leaves_of(const FileSet& files, size_t file) const EXCLUDES_LOCK(mutex_);

  const LmdbOptions options_;
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<LmdbLeaves>> leaves_ GUARDED_BY(mutex_);
};

}  // namespace headrace
