// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/recordio/recordio_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "headrace/base/byte_stream.h"
#include "headrace/base/number_text.h"
#include "headrace/base/text.h"
#include "headrace/formats/recordio/recordio_frames.h"
#include "headrace/formats/shards/extent_source.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/paths.h"

namespace headrace {
namespace {

const ErrorCode kBadHeader{
    "HR0477", ErrorKind::kData, "invalid record header or label in a RecordIO file",
    "The record's IRHeader (MXNet) is truncated, or its label does not match the field: not an "
    "integer, or not the number of values in label_shape=. label_dtype=\"float32\" accepts any "
    "single number; header=False reads records without such a header."};

enum : size_t { kContentField, kLabelField };
enum : size_t { kFrame, kJoined, kLabel };  // indices of a record's own buffers

constexpr size_t kIrBytes = 24;
constexpr float kMaxWhole = 16777216.0f;  // 2^24: above it, float32 does not represent all
                                          // integers

Error bad_header(std::string what, std::string hint) {
  return Error{.code = &kBadHeader,
               .what = std::move(what),
               .where = Where{.offset = 0},
               .hint = std::move(hint)};
}

Result<int64_t> integer_of(float label) {
  if (std::abs(label) <= kMaxWhole && std::trunc(label) == label) {
    return static_cast<int64_t>(label);
  }
  return bad_header("its label is not an integer: " + shortest_text(label),
                    "label_dtype=\"float32\" accepts any number");
}

}  // namespace

std::optional<IrHeader> parse_ir_header(std::span<const uint8_t> data) {
  ByteReader in(data);
  IrHeader out;
  out.flag = in.number<uint32_t>();
  const auto label = in.number<uint32_t>();
  std::memcpy(&out.label, &label, sizeof label);
  out.id = in.number<uint64_t>();
  out.id2 = in.number<uint64_t>();
  out.labels = in.bytes(uint64_t{out.flag} * sizeof(float));
  if (!in.good()) return {};
  out.content = in.bytes(in.left());
  return out;
}

RecordIoSource::RecordIoSource(std::unique_ptr<FileSet> files, ContainerIndex index, Schema schema,
                               std::vector<RecordIoKeys> keys, RecordIoOptions options)
    : ExtentSource(std::move(files), std::move(index), std::move(schema)),
      keys_(std::move(keys)),
      options_(std::move(options)) {}

std::string RecordIoSource::key(int64_t record) const {
  if (keys_.empty()) return ExtentSource::key(record);
  const size_t file = index().records[record].file;
  const std::optional<std::string> key = keys_[file][record - index().records.first_of(file)];
  if (!key) return ExtentSource::key(record);
  if (keys_.size() == 1) return *key;
  return std::string(last_name(without_query(files().shown(file)))) + ":" + *key;
}

Result<void> RecordIoSource::parse(int64_t, std::span<const uint8_t> bytes,
                                   const std::vector<bool>& wanted, RecordData& out) const {
  Result<std::span<const uint8_t>> data = recordio_data(bytes, options_.verify, out.owned[kJoined]);
  if (!data) return std::move(data.error());
  std::span<const uint8_t> content = *data;
  if (options_.header) {
    const std::optional<IrHeader> header = parse_ir_header(content);
    if (!header) {
      return bad_header("it has " + count_text(static_cast<int64_t>(content.size()), "byte") +
                            ", which is too short for its header",
                        "header=False reads records without one");
    }
    content = header->content;
    if (options_.label != RecordIoLabel::kNone && wanted[kLabelField]) {
      if (Result<void> taken = take_label(*header, out); !taken) return taken;
    }
  }
  if (wanted[kContentField]) out.fields[kContentField].bytes = content;
  return {};
}

Result<void> RecordIoSource::take_label(const IrHeader& header, RecordData& out) const {
  FieldData& data = out.fields[kLabelField];
  const auto* single = reinterpret_cast<const uint8_t*>(&header.label);
  const std::span<const uint8_t> values =
      header.flag > 0 ? header.labels : std::span<const uint8_t>(single, sizeof(float));
  if (options_.label != RecordIoLabel::kArray && values.size() != sizeof(float)) {
    return bad_header("it has " + count_text(header.flag, "label") + ", but the field has one",
                      "label_shape=-1 accepts any number of values");
  }
  if (options_.label == RecordIoLabel::kInteger) {
    float label = 0;
    std::memcpy(&label, values.data(), sizeof label);
    Result<int64_t> integer = integer_of(label);
    if (!integer) return std::move(integer.error());
    data.scalar = *integer;
    return {};
  }
  const Shape& shape = schema()[kLabelField].shape;
  const auto count = static_cast<int64_t>(values.size() / sizeof(float));
  if (!shape.empty() && shape[0] < 0) {
    const int64_t row = element_count({shape.begin() + 1, shape.end()});
    data.shape = shape;
    data.shape[0] = count / row;
    if (count % row != 0) data.shape.clear();
  }
  if (!shape.empty() && (shape[0] < 0 ? data.shape.empty() : count != element_count(shape))) {
    return bad_header("it has " + count_text(count, "label") + ", which do not fit label_shape",
                      "label_shape=-1 accepts any number of values");
  }
  Buffer& memory = out.owned[kLabel];
  memory.resize(values.size());
  std::memcpy(memory.data(), values.data(), values.size());
  data.bytes = memory.bytes();
  return {};
}

// `begin`: the first bytes of the record's frame.
Result<int64_t> RecordIoSource::label_of(int64_t record, std::span<const uint8_t> begin) const {
  uint32_t words[2] = {};
  if (begin.size() >= sizeof words) std::memcpy(words, begin.data(), sizeof words);
  const uint32_t bytes = words[1] & ((uint32_t{1} << 29) - 1);
  const bool simple = words[0] == kRecordIoMagic && words[1] >> 29 == 0 &&
                      bytes <= index().records[record].bytes - kRecordIoHeader &&
                      begin.size() >= kRecordIoHeader + kIrBytes && bytes >= kIrBytes;
  if (simple) {
    ByteReader in(begin.subspan(kRecordIoHeader));
    const auto flag = in.number<uint32_t>(), label = in.number<uint32_t>();
    float value = 0;
    std::memcpy(&value, &label, sizeof value);
    if (flag == 0) return integer_of(value);
  }
  // A record that is damaged, in parts, or whose label is elsewhere is read as the loader reads it.
  std::vector<bool> wanted(schema().size());
  wanted[kLabelField] = true;
  RecordData data;
  read({&record, 1}, wanted, {&data, 1});
  if (!data.result) return std::move(data.result.error());
  return data.fields[kLabelField].scalar;
}

std::vector<int64_t> RecordIoSource::integer_column(std::string_view name) const {
  if (options_.label != RecordIoLabel::kInteger || schema()[kLabelField].name != name) return {};
  return column_of(files(), index(),
                   [this](FileWindow& window, int64_t record, const Extent& extent) {
                     const auto most = std::min<uint64_t>(extent.bytes, kRecordIoHeader + kIrBytes);
                     Result<std::span<const uint8_t>> begin = window.at(extent.offset, most);
                     return begin ? label_of(record, *begin) : std::move(begin.error());
                   });
}

namespace {

constexpr int64_t kNoKey = INT64_MIN;

// Only if formatting it gives the same text: "007" is a name.
std::optional<int64_t> number_of(std::string_view key) {
  const auto value = number_from<int64_t>(key);
  return value && *value != kNoKey && std::to_string(*value) == key ? value : std::nullopt;
}

}  // namespace

void RecordIoKeys::add(std::string_view key) {
  const std::optional<int64_t> number = number_of(key);
  if (form_ == Form::kCounted && number != size_) {
    widen(number || key.empty() ? Form::kNumbers : Form::kNames);
  }
  if (form_ == Form::kNumbers && !number && !key.empty()) widen(Form::kNames);
  if (form_ == Form::kNumbers) numbers_.push_back(number.value_or(kNoKey));
  if (form_ == Form::kNames) names_.add(key);
  ++size_;
}

void RecordIoKeys::widen(Form form) {
  if (form == Form::kNumbers) {
    for (int64_t i = 0; i < size_; ++i) numbers_.push_back(i);
  } else {
    for (int64_t i = 0; i < size_; ++i) names_.add((*this)[i].value_or(""));
    numbers_ = {};
  }
  form_ = form;
}

std::optional<std::string> RecordIoKeys::operator[](int64_t record) const {
  if (form_ == Form::kCounted) return std::to_string(record);
  if (form_ == Form::kNumbers) {
    if (numbers_[record] == kNoKey) return {};
    return std::to_string(numbers_[record]);
  }
  if (names_[record].empty()) return {};
  return std::string(names_[record]);
}

void RecordIoKeys::shrink() {
  numbers_.shrink_to_fit();
  names_.shrink();
}

}  // namespace headrace
