// SPDX-License-Identifier: Apache-2.0
// One file per dataset with the row indexes of its images (RowIndexSlot in codec.h), so that a
// decoder can start at the window, and the packet indexes of its videos, so that their tables need
// not be read. Only codecs interpret an index: in this file an index is just bytes, and a picture
// is either an image or a video.
//
// The file is a table with one slot per picture, followed by entries. Entries are only appended:
// several processes may extend the file at the same time, and a process that is killed may leave
// the file incomplete. So the file's contents are not trusted: an entry is used only if the hash in
// its slot equals the hash of the picture's bytes, and its own checksum is correct.
//
// Memory: one block of entries that are not yet written, regardless of the size of the dataset. All
// members may be called from any thread.
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

// The dataset that a file belongs to. The slot of a picture is record * pictures + its number in
// the record.
struct RowIndexKey {
  uint64_t fingerprint = 0;
  int64_t records = 0;
  int64_t pictures = 0;  // pictures per record
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
    uint64_t live_bytes = 0;  // bytes of the entries that the table points to
  };

  // Errors: a storage error if there is no such file, HR0460 if it is not a row index, HR0461 if it
  // belongs to another dataset.
  static Result<std::unique_ptr<RowIndexFile>> open(const std::string& path, const RowIndexKey& key,
                                                    bool writable);
  // Creates an empty file that has no name before publish(). Null if it cannot be written.
  static std::unique_ptr<RowIndexFile> create(const std::string& path, const RowIndexKey& key);
  // Opens the file to be extended, or creates it; replaces a file that is not an index of this
  // dataset, or that consists mostly of superseded entries. Null if that is not possible.
  static std::unique_ptr<RowIndexFile> extend(const std::string& path, const RowIndexKey& key);
  // The key stored in a file, regardless of its dataset. Errors as for open().
  static Result<RowIndexKey> key_of(const std::string& path);
  ~RowIndexFile();

  // Writes what is pending, then gives the file its name. False if either fails, with the reason in
  // errno, as for add() and flush(), whichever thread encountered the error.
  bool publish(bool replace);

  // REQUIRES: 0 <= slot < key.slots().
  std::optional<Place> place_of(int64_t slot) const;
  // Fills all of `out`, place.length bytes. False if the entry cannot be read, or its checksum is
  // wrong.
  bool read(int64_t slot, const Place& place, std::span<uint8_t> out) const;
  // Takes effect when the block is full, or at the next flush(). False once writing has failed, and
  // for an index longer than kLongest.
  bool add(int64_t slot, uint64_t hash, std::span<const uint8_t> row_index) EXCLUDES_LOCK(mutex_);
  // Whether the file has a longer index for the same bytes, or one is pending.
  bool has_longer(int64_t slot, uint64_t hash, size_t length) const EXCLUDES_LOCK(mutex_);
  // Adds all entries of another file, with slots shifted by `first`. Unreadable entries are
  // skipped. False if writing fails. REQUIRES: the shifted slots are below key.slots().
  bool copy_from(const RowIndexFile& other, int64_t first = 0);
  bool flush() EXCLUDES_LOCK(mutex_);
  // Whether writing has failed; then nothing more is added.
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
    size_t offset, length;  // within the block
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
  int failed_ GUARDED_BY(mutex_) = 0;  // errno of the first failed write
};

// The name of a dataset's index file in the cache.
std::string row_index_cache_name(uint64_t fingerprint);

}  // namespace headrace
