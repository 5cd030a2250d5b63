// SPDX-License-Identifier: Apache-2.0
// A source whose record is one contiguous range of one file: shared by tar, TFRecord, RecordIO,
// LMDB and MDS. A format provides the ranges (its index) and extracts the fields from the bytes of
// a range; this class reads the ranges, consecutive ones with one call, and adds the location to
// every error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/formats/shards/container_index.h"
#include "headrace/sources/source.h"
#include "headrace/storage/file_set.h"
#include "headrace/storage/file_window.h"

namespace headrace {

class ExtentSource : public Source {
 public:
  int64_t size() const final { return index_.records.size(); }
  const Schema& schema() const final { return schema_; }
  ReadStyle read_style() const final {
    return files_->is_async() ? ReadStyle::kLater : ReadStyle::kFiles;
  }
  void pieces(int64_t index, const std::vector<bool>& wanted,
              std::vector<FilePiece>& out) const final;
  uint64_t fingerprint() const override { return fingerprint_; }
  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const final;
  Where where(int64_t record) const final;
  std::vector<int64_t> block_ends() const final;
  void will_read(int64_t begin, int64_t end, const std::vector<bool>& wanted) const final;
  // "shard-000.tar: 17", for formats without names.
  std::string key(int64_t index) const override;
  // The serialized index, and the path for it next to the data; empty for local files.
  std::optional<IndexSidecar> index_sidecar() const;

 protected:
  // The subclass opens the files and makes the index.
  ExtentSource(std::unique_ptr<FileSet> files, ContainerIndex index, Schema schema);

  const FileSet& files() const { return *files_; }
  const ContainerIndex& index() const { return index_; }
  // "tar train-{0..9}.tar (12,000 records in 10 files; 1 damaged place)".
  std::string described(std::string_view format, const std::string& path) const;

  // HR0411: a record or field that is larger than RecordData::max_bytes or the available memory.
  static Error too_large(std::string what);
  // Reads part of a record's bytes: for keys and columns that do not need the whole record.
  Result<void> read_part(int64_t record, uint64_t offset, std::span<uint8_t> out) const;

 private:
  // Sets out.fields (initialized, empty) to the values of the wanted fields in `bytes`, which are
  // in out.owned[0], followed by kPadding readable bytes. Converted values go to further elements
  // of out.owned, whose memory is reused from record to record. Errors need not contain file and
  // record number, which are added; offsets count from the start of the record.
  virtual Result<void> parse(int64_t record, std::span<const uint8_t> bytes,
                             const std::vector<bool>& wanted, RecordData& out) const = 0;
  // How many elements of out.owned parse() uses, including the record's own bytes.
  virtual size_t buffers() const { return 1; }

  Error damage_of(const Damage& damage) const;
  Result<bool> prepare(int64_t record, const Extent& extent, RecordData& out) const;
  void read_run(const Extent& first, const std::vector<bool>& wanted,
                std::span<RecordData> out) const;
  void finish(int64_t record, const std::vector<bool>& wanted, RecordData& out) const;

  std::unique_ptr<FileSet> files_;
  ContainerIndex index_;
  Schema schema_;
  uint64_t fingerprint_ = 0;
};

// --- One integer field of all records of a container, read on all cores, without the other bytes
// of the records ---

// Reads a record's value with small reads from its file. Called from several threads, but not for
// records that the index marks as bad.
using ReadInteger =
    std::function<Result<int64_t>(FileWindow& window, int64_t record, const Extent& extent)>;

// -1 for bad records, as for Source::integer_column. Throws Exception: storage errors, with file
// and record.
std::vector<int64_t> column_of(const FileSet& files, const ContainerIndex& index,
                               const ReadInteger& read);

}  // namespace headrace
