// SPDX-License-Identifier: Apache-2.0
// The entries of an LMDB environment that are records, where their values are, and their keys.
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
  std::string database;  // empty: the unnamed one, or the only one there is
  bool recover = false;  // read what one sound meta page knows
};

// A record is where its value lies: from its node on where it stands in a leaf page, from the
// page's header on where it has pages of its own. Tallies: "left out: KEY", "named databases",
// "integer keys", "recovered". Errors: HR0480, HR0481, HR0483; damage is HR0482.
Result<void> scan_lmdb(const File& file, const LmdbOptions& options, ContainerIndex& out,
                       const std::function<void(uint64_t)>& passed);

// HR0482, at the begin of a record.
Error bad_lmdb_page(std::string what);

// A key for people: as it is where it is text, as a number in databases of such, else its bytes.
std::string shown_lmdb_key(std::span<const uint8_t> key, bool integers);

struct LmdbLeaves;

// The keys of values that have pages of their own: they stand elsewhere, in the leaf pages. The
// first key that is asked for makes a table of an environment's leaf pages, 16 bytes for each,
// which is a fraction of a byte a record. All members may be called from any thread.
class LmdbKeys {
 public:
  LmdbKeys(LmdbOptions options, size_t files);
  ~LmdbKeys();
  // Key of the record'th record of a file; nothing if it cannot be read.
  std::optional<std::string> key(const FileSet& files, size_t file, int64_t record,
                                 bool integers) const;

 private:
  const LmdbLeaves* leaves_of(const FileSet& files, size_t file) const EXCLUDES_LOCK(mutex_);

  const LmdbOptions options_;
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<LmdbLeaves>> leaves_ GUARDED_BY(mutex_);
};

}  // namespace headrace
