// SPDX-License-Identifier: Apache-2.0
// The records of RecordIO files: MXNet's IRHeader, and the data after it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/formats/shards/extent_source.h"
#include "headrace/sources/name_list.h"

namespace headrace {

// struct IRHeader { u32 flag; f32 label; u64 id, id2; }; then, if flag > 0, that many f32 labels.
struct IrHeader {
  uint32_t flag = 0;
  float label = 0;
  uint64_t id = 0, id2 = 0;
  std::span<const uint8_t> labels;   // if flag > 0
  std::span<const uint8_t> content;  // everything after the header and labels
};
// Empty if the data is too short.
std::optional<IrHeader> parse_ir_header(std::span<const uint8_t> data);

enum class RecordIoLabel : uint8_t { kNone, kInteger, kFloat, kArray };

struct RecordIoOptions {
  std::string title;  // the path, for description()
  bool verify = true;
  bool header = true;  // records begin with an IRHeader
  RecordIoLabel label = RecordIoLabel::kNone;
  std::vector<std::string> classes;
};

// The keys of records in a RecordIO file's index. If all keys equal the record numbers, they take
// no memory; other numbers take eight bytes each.
class RecordIoKeys {
 public:
  // Adds the key of the next record; empty if the index does not contain it.
  void add(std::string_view key);
  std::optional<std::string> operator[](int64_t record) const;
  void shrink();

 private:
  enum class Form : uint8_t { kCounted, kNumbers, kNames };
  void widen(Form form);

  Form form_ = Form::kCounted;
  int64_t size_ = 0;
  std::vector<int64_t> numbers_;
  NameList names_;
};

class RecordIoSource final : public ExtentSource {
 public:
  // The schema: the record's content (an image, or bytes), then the label if there is one.
  RecordIoSource(std::unique_ptr<FileSet> files, ContainerIndex index, Schema schema,
                 std::vector<RecordIoKeys> keys, RecordIoOptions options);

  std::string key(int64_t index) const override;
  std::vector<std::string> classes() const override { return options_.classes; }
  std::vector<int64_t> integer_column(std::string_view field) const override;
  std::string description() const override { return described("recordio", options_.title); }

 private:
  Result<void> parse(int64_t record, std::span<const uint8_t> bytes,
                     const std::vector<bool>& wanted, RecordData& out) const override;
  size_t buffers() const override { return 3; }  // the frame, its joined parts, the label
  Result<void> take_label(const IrHeader& header, RecordData& out) const;
  Result<int64_t> label_of(int64_t record, std::span<const uint8_t> begin) const;

  std::vector<RecordIoKeys> keys_;  // one per file; empty: no index
  RecordIoOptions options_;
};

}  // namespace headrace
