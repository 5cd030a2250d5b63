// SPDX-License-Identifier: Apache-2.0
// A source whose encoded pictures come with an index of their rows (RowIndexSlot), and whose
// videos with an index of their packets (video_index.h), from a file that is kept between runs;
// if allowed, it also stores what is learned while decoding them.
//
// If the source is made of others, each of these has its own file, keyed by its own record
// numbers: an index made for one dataset works in every source that contains it.
//
// Pixels do not depend on it. What a record's slot points to lives as long as the record's bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "headrace/sources/row_index/row_index_file.h"
#include "headrace/sources/source_around.h"

namespace headrace {

// The pictures and videos of a source's records that can have indexes: the encoded ones.
class IndexedFields {
 public:
  explicit IndexedFields(const Source& source);
  const std::vector<size_t>& fields() const { return fields_; }  // numbers in the schema
  const RowIndexKey& key() const { return key_; }
  int64_t slot(int64_t record, size_t picture) const {
    return record * key_.pictures + static_cast<int64_t>(picture);
  }
  // The same by the field's number in the schema; -1 where it can have none.
  int64_t slot_of_field(int64_t record, size_t field) const;

 private:
  std::vector<size_t> fields_;
  RowIndexKey key_;
};

// Identifies the bytes to which an index belongs: a hash of all of them, of a video's both
// ends, or of the identity of a file that is only open. None if it is not available.
std::optional<uint64_t> indexed_hash(FieldKind kind, const FieldData& data);

// A source that records come from, and its file.
struct IndexedOrigin {
  const Source* source;  // lives as long as what is made of it
  IndexedFields pictures;
  std::unique_ptr<RowIndexFile> file;
};

class IndexedSource final : public SourceAround, private RowIndexStore {
 public:
  // `origins`: the source itself, or some of its origins(). `learn`: what decoding teaches is added
  // to their files.
  IndexedSource(SourcePtr source, std::vector<IndexedOrigin> origins, bool learn);

  std::string identity() const override { return inner()->identity(); }
  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override;

  // Writes what was learned so far. Without it, that happens now and then, and at the end.
  void keep();

  struct Counts {
    int64_t used = 0;     // pictures that came with an index
    int64_t stale = 0;    // with an outdated or damaged one
    int64_t learned = 0;  // times that decoding went beyond what was known
  };
  Counts counts() const { return {used_, stale_, learned_}; }
  const std::vector<IndexedOrigin>& parts() const { return parts_; }
  bool learns() const { return learn_; }

 private:
  // The part with a field's index, and its slot there; null if there is none.
  const IndexedOrigin* part_of(int64_t record, size_t field, int64_t& slot) const;
  void attach(const std::vector<bool>& wanted, RecordData& record) const;
  void learned(uint64_t picture, std::span<const uint8_t> row_index) override;

  const std::vector<size_t> fields_;  // can have indexes
  const std::vector<IndexedOrigin> parts_;
  std::unordered_map<const Source*, const IndexedOrigin*> part_of_source_;
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
  int64_t pictures = 0;                  // can have an index, over all its origins
  std::string file;                      // the one in use, or its future path; several: the folder
  std::string note;                      // why there is none, or none for some
};
// `file` empty: each origin's own in the cache, which may be missing. One that is named is of the
// source as a whole, or of one of its origins. Throws Exception HR0460, HR0461 or a storage error
// where a file was named that cannot be used.
WithRowIndex with_row_index(const SourcePtr& source, RowIndexUse use, const std::string& file);

}  // namespace headrace
