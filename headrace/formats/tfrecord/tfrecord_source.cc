// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/tfrecord/tfrecord_source.h"

#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/formats/tfrecord/tf_fields.h"
#include "headrace/formats/tfrecord/tfrecord_frames.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

constexpr size_t kNone = SIZE_MAX;
constexpr size_t kAlignment = 8;  // for converted values

Schema schema_of(const std::vector<TfField>& fields) {
  Schema schema;
  for (const TfField& field : fields) schema.push_back(field.field);
  return schema;
}

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

TfRecordSource::TfRecordSource(std::unique_ptr<FileSet> files, ContainerIndex index,
                               std::vector<TfField> fields, TfRecordOptions options)
    : ExtentSource(std::move(files), std::move(index), schema_of(fields)),
      fields_(std::move(fields)),
      options_(std::move(options)),
      next_(fields_.size(), kNone) {
  Fingerprint print;
  print.add("tfrecord");
  print.add(ExtentSource::fingerprint());
  print.add(static_cast<uint64_t>(options_.label_offset));
  for (size_t i = 0; i < fields_.size(); ++i) {
    print.add(fields_[i].feature);
    const auto [first, added] = by_feature_.emplace(fields_[i].feature, i);
    if (added) continue;
    next_[i] = first->second;
    first->second = i;
  }
  fingerprint_ = print.value();
}

TfRecordSource::TfRecordSource(std::unique_ptr<FileSet> files, ContainerIndex index, Field data,
                               TfRecordOptions options)
    : ExtentSource(std::move(files), std::move(index), {std::move(data)}),
      options_(std::move(options)) {
  Fingerprint print;
  print.add("tfrecord data");
  print.add(ExtentSource::fingerprint());
  fingerprint_ = print.value();
}

std::string TfRecordSource::description() const {
  std::string out = described("tfrecord", options_.title);
  out.pop_back();
  if (!options_.left_out.empty()) {
    out += "; no field for " + quoted_list(options_.left_out, 3);
  }
  return out + ")";
}

Result<void> TfRecordSource::parse(int64_t, std::span<const uint8_t> bytes,
                                   const std::vector<bool>& wanted, RecordData& out) const {
  Result<std::span<const uint8_t>> data = tf_data(bytes, options_.verify);
  if (!data) return std::move(data.error());
  if (fields_.empty()) {
    if (wanted[0]) out.fields[0].bytes = *data;
    return {};
  }
  if (Result<void> found = find_features(bytes, *data, wanted, out); !found) return found;
  return take_values(bytes, wanted, out);
}

// Sets the wanted fields to their features in the message.
Result<void> TfRecordSource::find_features(std::span<const uint8_t> frame,
                                           std::span<const uint8_t> message,
                                           const std::vector<bool>& wanted, RecordData& out) const {
  TfEntries entries(message);
  TfEntry entry;
  while (entries.next(entry)) {
    const auto found = by_feature_.find(entry.name);
    if (found == by_feature_.end()) continue;
    for (size_t i = found->second; i != kNone; i = next_[i]) {
      if (wanted[i] && fields_[i].is_list == entry.is_list) out.fields[i].bytes = entry.value;
    }
  }
  if (!entries.problem().what) return {};
  return not_an_example(entries.problem(), frame.data());
}

// Replaces features with values. Converted numbers are written to a separate buffer for all fields,
// once their total size is known.
Result<void> TfRecordSource::take_values(std::span<const uint8_t> frame,
                                         const std::vector<bool>& wanted, RecordData& out) const {
  struct Written {
    size_t field, bytes;
    std::span<const uint8_t> value;
  };
  thread_local std::vector<Written> written;
  written.clear();
  size_t total = 0;
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (!wanted[i]) continue;
    FieldData& data = out.fields[i];
    const std::span<const uint8_t> value = data.bytes;
    Result<size_t> bytes =
        prepare_value(fields_[i], value, options_.empty_if_missing, frame.data(), data);
    if (!bytes) return std::move(bytes.error());
    if (fields_[i].field.kind == FieldKind::kLabel) {
      data.scalar = tf_label(data.scalar, options_.label_offset);
    }
    if (*bytes == 0) continue;
    written.push_back({i, *bytes, value});
    total += aligned(*bytes);
  }
  if (written.empty()) return {};
  if (total > out.max_bytes) {
    return Error{.code = Registry<ErrorCode>::find("HR0411"),
                 .what = "its numbers take " + with_commas(static_cast<int64_t>(total)) +
                         " bytes, but the limit is " +
                         with_commas(static_cast<int64_t>(out.max_bytes)),
                 .hint = "raise memory_limit, or skip the record"};
  }
  Buffer& memory = out.owned[1];
  memory.resize(total);
  uint8_t* to = memory.data();
  for (const Written& each : written) {
    write_value(fields_[each.field], each.value, to);
    out.fields[each.field].bytes = {to, each.bytes};
    to += aligned(each.bytes);
  }
  return {};
}

std::vector<int64_t> TfRecordSource::integer_column(std::string_view name) const {
  for (const TfField& field : fields_) {
    const bool integer =
        field.field.dtype == DType::kInt64 && field.field.shape.empty() &&
        (field.field.kind == FieldKind::kLabel || field.field.kind == FieldKind::kTensor);
    if (field.field.name != name || !integer || field.is_list) continue;
    const bool label = field.field.kind == FieldKind::kLabel;
    return tf_integer_column(files(), index(), field.feature, label ? options_.label_offset : 0);
  }
  return {};
}

}  // namespace headrace
