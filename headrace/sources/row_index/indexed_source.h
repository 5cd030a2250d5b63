// SPDX-License-Identifier: Apache-2.0
// A source whose encoded pictures come with what is known of their rows (RowIndexSlot), and whose
// videos with what is known of their packets (video_index.h), from a file that keeps it between
// runs; and which, where it may, keeps what decoding them teaches.
//
// Pixels do not depend on it. What a record's slot points to lives as long as the record's bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/sources/row_index/row_index_file.h"
#include "headrace/sources/source_around.h"

namespace headrace {

// Which pictures and videos of a source's records can have indexes: the encoded ones.
class IndexedFields {
 public:
  explicit IndexedFields(const Source& source);
  const std::vector<size_t>& fields() const { return fields_; }  // numbers in the schema
  const RowIndexKey& key() const { return key_; }
  int64_t slot(int64_t record, size_t picture) const {
    return record * key_.pictures + static_cast<int64_t>(picture);
  }

 private:
  std::vector<size_t> fields_;
  RowIndexKey key_;
};

// What tells the bytes that an index is of from others: a hash of all of them, of a video's both
// ends, or of the identity of a file that is only open. None where that is not to be had.
std::optional<uint64_t> indexed_hash(FieldKind kind, const FieldData& data);

class IndexedSource final : public SourceAround, private RowIndexStore {
 public:
  // `learn`: what decoding teaches is added to the file.
  IndexedSource(SourcePtr source, std::unique_ptr<RowIndexFile> file, bool learn);

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override;

  // Writes what was learned so far. Without it, that happens now and then, and at the end.
  void keep() { file_->flush(); }

  struct Counts {
    int64_t used = 0;     // pictures that came with an index
    int64_t stale = 0;    // those that have one of other bytes, or a damaged one
    int64_t learned = 0;  // times that decoding went beyond what was known
  };
  Counts counts() const { return {used_, stale_, learned_}; }
  const RowIndexFile& file() const { return *file_; }
  bool learns() const { return learn_; }

 private:
  void attach(const std::vector<bool>& wanted, RecordData& record) const;
  void learned(uint64_t picture, std::span<const uint8_t> row_index) override;

  const IndexedFields pictures_;
  const std::unique_ptr<RowIndexFile> file_;
  const bool learn_;
  mutable std::atomic<int64_t> used_{0}, stale_{0}, learned_{0};
};

enum class RowIndexUse : uint8_t {
  kOff,
  kUse,   // the file that is there
  kAuto,  // also made and extended, in the cache
};

struct WithRowIndex {
  SourcePtr source;
  std::shared_ptr<IndexedSource> index;  // shared: views of the source hold it; null: none in use
  std::string file;                      // which one is in use, or would be
  std::string note;                      // why there is none
};
// `file` empty: the dataset's own in the cache, which may be missing. A view (subset, split) uses
// the index of the source that it views. Throws Exception HR0460, HR0461 or a storage error where a
// file was named that cannot be used.
WithRowIndex with_row_index(const SourcePtr& source, RowIndexUse use, const std::string& file);

}  // namespace headrace
