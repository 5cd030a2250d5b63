// SPDX-License-Identifier: Apache-2.0
// The source of TFRecord files: the fields are features of tf.train.Example, or the unchanged data
// of each record.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headrace/formats/shards/container_index.h"
#include "headrace/formats/shards/extent_source.h"
#include "headrace/formats/tfrecord/tf_fields.h"
#include "headrace/storage/file_set.h"

namespace headrace {

struct TfRecordOptions {
  std::string title;   // beginning of description(), without the number of records
  bool verify = true;  // verify the checksums of the data
  bool empty_if_missing = false;
  int64_t label_offset = 0;  // added to labels
  std::vector<std::string> classes;
  std::vector<std::string> left_out;  // features that are not fields, and why
};

class TfRecordSource final : public ExtentSource {
 public:
  // Records that are Examples.
  TfRecordSource(std::unique_ptr<FileSet> files, ContainerIndex index, std::vector<TfField> fields,
                 TfRecordOptions options);
  // Any records: their data is the value of the single field.
  TfRecordSource(std::unique_ptr<FileSet> files, ContainerIndex index, Field data,
                 TfRecordOptions options);

  uint64_t fingerprint() const override { return fingerprint_; }
  std::vector<std::string> classes() const override { return options_.classes; }
  std::vector<int64_t> integer_column(std::string_view field) const override;
  std::string description() const override;

 private:
  Result<void> parse(int64_t record, std::span<const uint8_t> bytes,
                     const std::vector<bool>& wanted, RecordData& out) const override;
  size_t buffers() const override { return fields_.empty() ? 1 : 2; }
  Result<void> find_features(std::span<const uint8_t> frame, std::span<const uint8_t> message,
                             const std::vector<bool>& wanted, RecordData& out) const;
  Result<void> take_values(std::span<const uint8_t> frame, const std::vector<bool>& wanted,
                           RecordData& out) const;

  std::vector<TfField> fields_;  // empty: data unchanged
  TfRecordOptions options_;
  std::unordered_map<std::string_view, size_t> by_feature_;  // the first field that uses each
  std::vector<size_t> next_;                                 // next field with the same feature
  uint64_t fingerprint_ = 0;
};

// Reads one integer feature of many TFRecords, without the other bytes of the records
// (tf_column.cc): the values of all records, with `offset` added; -1 for bad records. Uses all
// cores. Does not verify checksums. Throws Exception: storage errors, with their location.
std::vector<int64_t> tf_integer_column(const FileSet& files, const ContainerIndex& index,
                                       std::string_view feature, int64_t offset);

}  // namespace headrace
