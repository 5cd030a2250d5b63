// SPDX-License-Identifier: Apache-2.0
// A source whose record is one piece of one file: shared by tar, TFRecord, RecordIO, LMDB and MDS.
// A format finds the pieces (its index) and takes the fields out of one; this reads the pieces,
// neighbors with one call, and gives every error its place.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/formats/shards/container_index.h"
#include "headrace/formats/shards/index_beside_data.h"
#include "headrace/sources/source.h"

namespace headrace {

class ExtentSource : public Source {
 public:
  int64_t size() const final { return index_.records.size(); }
  const Schema& schema() const final { return schema_; }
  ReadStyle read_style() const final {
    return files_->answers_later() ? ReadStyle::kLater : ReadStyle::kFiles;
  }
  void pieces(int64_t index, const std::vector<bool>& wanted,
              std::vector<FilePiece>& out) const final;
  uint64_t fingerprint() const override { return fingerprint_; }
  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const final;
  Where where(int64_t record) const final;
  std::vector<int64_t> block_ends() const final;
  void will_read(int64_t begin, int64_t end) const final;
  // "shard-000.tar: 17", where the format knows no name.
  std::string key(int64_t index) const override;
  // Its index, and where it is kept beside the data; none for files of the local system.
  std::optional<IndexBeside> index_beside() const;

 protected:
  // The index and the files are made by the subclass's open function.
  ExtentSource(std::unique_ptr<FileSet> files, ContainerIndex index, Schema schema);

  const FileSet& files() const { return *files_; }
  const ContainerIndex& index() const { return index_; }
  // "tar train-{0..9}.tar (12,000 records in 10 files; 1 damaged place)".
  std::string described(std::string_view format, const std::string& path) const;

  // Reads part of a record's bytes: for keys and columns that need no picture.
  Result<void> read_part(int64_t record, uint64_t offset, std::span<uint8_t> out) const;

 private:
  // Points out.fields (ready, empty) to the values of the wanted fields in `bytes`, which stand in
  // out.owned[0], kPadding readable bytes after them. What must be made anew goes to further
  // elements of out.owned, which stay from record to record. Errors need no file and no record
  // number; an offset counts from the record's begin.
  virtual Result<void> parse(int64_t record, std::span<const uint8_t> bytes,
                             const std::vector<bool>& wanted, RecordData& out) const = 0;
  // How many elements of out.owned parse() uses, the record's own bytes included.
  virtual size_t buffers() const { return 1; }

  Error damage_of(const Damage& damage) const;
  Result<void> prepare(int64_t record, const Extent& extent, RecordData& out) const;
  void read_run(const Extent& first, const std::vector<bool>& wanted,
                std::span<RecordData> out) const;
  void finish(int64_t record, const std::vector<bool>& wanted, RecordData& out) const;

  std::unique_ptr<FileSet> files_;
  ContainerIndex index_;
  Schema schema_;
  uint64_t fingerprint_ = 0;
};

}  // namespace headrace
