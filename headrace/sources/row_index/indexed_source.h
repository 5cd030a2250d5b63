// SPDX-License-Identifier: Apache-2.0
// A source that delivers encoded images with an index of their rows (RowIndexSlot), and videos with
// an index of their packets (video_index.h), from a file that is kept between runs. If allowed,
// rows found while decoding are added to that file.
//
// If the source is made of other sources, each of these has its own index file, with its own record
// numbers, so an index built for one dataset works in every source that contains it.
//
// Pixels do not depend on the index. The index in a record's slot lives as long as the record's
// bytes.
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

// The fields of a source that can have indexes: encoded images and videos.
class IndexedFields {
 public:
  explicit IndexedFields(const Source& source);
  const std::vector<size_t>& fields() const { return fields_; }  // field numbers in the schema
  const RowIndexKey& key() const { return key_; }
  int64_t slot(int64_t record, size_t picture) const {
    return record * key_.pictures + static_cast<int64_t>(picture);
  }
  // The same by the field's number in the schema; -1 if the field cannot have an index.
  int64_t slot_of_field(int64_t record, size_t field) const;

 private:
  std::vector<size_t> fields_;
  RowIndexKey key_;
};

// Identifies the bytes to which an index belongs: a hash of all bytes, of both ends of a video, or
// of the identity of a file that is open but not read. Empty if not available.
std::optional<uint64_t> indexed_hash(FieldKind kind, const FieldData& data);

// A source that records come from, and its index file.
struct IndexedOrigin {
  const Source* source;  // outlived by all sources made of it
  IndexedFields pictures;
  std::unique_ptr<RowIndexFile> file;
};

class IndexedSource final : public SourceAround, private RowIndexStore {
 public:
  // `origins`: the source itself, or some of its origins(). `learn`: indexes found while decoding
  // are added to their files.
  IndexedSource(SourcePtr source, std::vector<IndexedOrigin> origins, bool learn);

  std::string identity() const override { return inner()->identity(); }
  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override;

  // Writes what was learned so far. Otherwise this happens occasionally, and at destruction.
  void keep();

  struct Counts {
    int64_t used = 0;     // images that came with an index
    int64_t stale = 0;    // images with an outdated or damaged index
    int64_t learned = 0;  // times that decoding extended an index
  };
  Counts counts() const { return {used_, stale_, learned_}; }
  const std::vector<IndexedOrigin>& parts() const { return parts_; }
  bool learns() const { return learn_; }

 private:
  // The part with a field's index, and its slot there; null if there is none.
  const IndexedOrigin* part_of(int64_t record, size_t field, int64_t& slot) const;
  void attach(const std::vector<bool>& wanted, RecordData& record) const;
  void learned(uint64_t picture, std::span<const uint8_t> row_index) override;

  const std::vector<size_t> fields_;  // fields that can have indexes
  const std::vector<IndexedOrigin> parts_;
  std::unordered_map<const Source*, const IndexedOrigin*> part_of_source_;
  const bool learn_;
  mutable std::atomic<int64_t> used_{0}, stale_{0}, learned_{0};
};

enum class RowIndexUse : uint8_t {
  kOff,
  kUse,   // use an existing file
  kAuto,  // also create and extend it, in the cache
};

struct WithRowIndex {
  SourcePtr source;
  std::shared_ptr<IndexedSource> index;  // shared: with views of the source; null: none in use
  int64_t pictures = 0;                  // images that can have an index, in all origins
  std::string file;                      // the one in use, or its future path; several: the folder
  std::string note;                      // why some or all have no index
};
// `file` empty: each origin's file in the cache, which may be missing. Otherwise it must belong to
// the source as a whole, or to one of its origins. Throws Exception HR0460, HR0461 or a storage
// error if a given file cannot be used.
WithRowIndex with_row_index(const SourcePtr& source, RowIndexUse use, const std::string& file);

}  // namespace headrace
