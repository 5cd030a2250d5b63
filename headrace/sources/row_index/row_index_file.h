// SPDX-License-Identifier: Apache-2.0
// One file per dataset with the row indexes of its pictures (RowIndexSlot in codec.h), so that a
// decoder can begin at the window, and the packet indexes of its videos, so that their tables need
// not be read. What an index says is the codec's; here it is bytes, and whatever has one a
// picture.
//
// The file is a table with one place for each picture, and entries after it. It is only ever added
// to: several processes may extend it at once, and one that is killed leaves what it had added. So
// nothing of it is believed. An entry is used only for a picture whose bytes have the hash that
// stands beside it, and only if its own checksum is right.
//
// Memory: one block of entries that are not yet written; nothing grows with the dataset.
// All members may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/base/mutex.h"
#include "headrace/storage/growing_file.h"

namespace headrace {

// The dataset of a file. Slot of a picture: record * pictures + its number in the record.
struct RowIndexKey {
  uint64_t fingerprint = 0;
  int64_t records = 0;
  int64_t pictures = 0;  // encoded ones in each record
  int64_t slots() const { return records * pictures; }
};

class RowIndexFile {
 public:
  static constexpr size_t kHeaderBytes = 64, kSlotBytes = 16;
  static constexpr size_t kLongest = (size_t{1} << 24) - 1;  // bytes of one row index
  static constexpr size_t kBlockBytes = size_t{64} << 10;

  // The position of a picture's index, and the bytes that it belongs to.
  struct Place {
    uint64_t hash = 0;    // content_hash() of the picture's bytes
    uint64_t offset = 0;  // in the file
    size_t length = 0;
  };
  struct Contents {
    int64_t entries = 0;
    uint64_t live_bytes = 0;  // of the entries that the table points to
  };

  // Errors: a storage error where there is no such file, HR0460 where it is not a row index,
  // HR0461 where it is another dataset's.
  static Result<std::unique_ptr<RowIndexFile>> open(const std::string& path, const RowIndexKey& key,
                                                    bool writable);
  // An empty one that has no name before publish(). Null when it cannot be written.
  static std::unique_ptr<RowIndexFile> create(const std::string& path, const RowIndexKey& key);
  // Opens it to be extended, or makes it; replaces what is not an index of this dataset, or
  // consists for the most part of entries that were superseded. Null when that is not possible.
  static std::unique_ptr<RowIndexFile> extend(const std::string& path, const RowIndexKey& key);
  // Key of a file, whatever its dataset. Errors: as of open().
  static Result<RowIndexKey> key_of(const std::string& path);
  ~RowIndexFile();

  // Writes what is pending, then gives the file its name. False when either failed: errno says why,
  // as it does for add() and flush(), whichever thread met the error.
  bool publish(bool replace);

  // REQUIRES: 0 <= slot < key.slots().
  std::optional<Place> place_of(int64_t slot) const;
  // Fills all of `out`, place.length bytes. False when the entry is not what was once added.
  bool read(int64_t slot, const Place& place, std::span<uint8_t> out) const;
  // Takes effect when its block is full, or with the next flush(). False once writing has failed,
  // and for an index that is too long.
  bool add(int64_t slot, uint64_t hash, std::span<const uint8_t> row_index) EXCLUDES_LOCK(mutex_);
  // Whether it has a longer one of the same bytes, or will.
  bool has_longer(int64_t slot, uint64_t hash, size_t length) const EXCLUDES_LOCK(mutex_);
  // Adds all entries of a file, with slots shifted by `first`. Unreadable ones are skipped. False
  // when writing fails. REQUIRES: the slots fit.
  bool copy_from(const RowIndexFile& other, int64_t first = 0);
  bool flush() EXCLUDES_LOCK(mutex_);
  // Whether writing has failed; then nothing is added any more.
  bool failed() const EXCLUDES_LOCK(mutex_);

  // Reads the whole table.
  Contents contents() const;
  uint64_t file_bytes() const { return file_->size(); }
  const std::string& path() const { return path_; }
  const RowIndexKey& key() const { return key_; }

 private:
  struct Pending {
    int64_t slot;
    uint64_t hash;
    size_t offset, length;  // in the block
  };
  struct Block {
    std::vector<uint8_t> bytes;
    std::vector<Pending> entries;
  };
  RowIndexFile(std::string path, const RowIndexKey& key, std::unique_ptr<GrowingFile> file)
      : path_(std::move(path)), key_(key), file_(std::move(file)) {}
  bool write(const Block& block);

  const std::string path_;
  const RowIndexKey key_;
  const std::unique_ptr<GrowingFile> file_;
  mutable Mutex mutex_;
  Block block_ GUARDED_BY(mutex_);
  int failed_ GUARDED_BY(mutex_) = 0;  // the error number of the first write that did
};

// The name of a dataset's entry in the cache.
std::string row_index_cache_name(uint64_t fingerprint);

}  // namespace headrace
