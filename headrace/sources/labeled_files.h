// SPDX-License-Identifier: Apache-2.0
// Sources whose record is one image, audio or video file, with or without a class: folders and list
// files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// Reads a file as field `field` of a record. The bytes are in out.owned[buffer]; a local file that
// is large, or `shared` by many records, and a staged video (StagedVideos) are passed as open files
// instead, if the reader allows that (RecordData::by_range).
void read_file_field(const std::string& path, int64_t record, size_t field, size_t buffer,
                     RecordData& out, bool shared = false);
// Prepares `out` for a record: empty fields and `buffers` buffers, whose memory is reused.
void begin_record(int64_t record, size_t fields, size_t buffers, RecordData& out);

class LabeledFiles : public Source {
 public:
  // `kind`: image, audio or video; also the name of the field.
  explicit LabeledFiles(bool labeled, FieldKind kind = FieldKind::kImage);

  const Schema& schema() const final { return schema_; }
  ReadStyle read_style() const final;
  void pieces(int64_t index, const std::vector<bool>& wanted,
              std::vector<FilePiece>& out) const final;
  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const final;
  std::string separate_file(int64_t index, size_t field) const final;
  std::string key(int64_t index) const final;
  std::vector<int64_t> integer_column(std::string_view field) const final;

 protected:
  bool labeled() const { return schema_.size() > 1; }

 private:
  // Writes the path to `out`.
  virtual void path_of(int64_t index, std::string& out) const = 0;
  virtual int64_t label_of(int64_t index) const = 0;
  Schema schema_;
};

}  // namespace headrace
