// SPDX-License-Identifier: Apache-2.0
#include "headrace/finish/device_work.h"

#include <algorithm>
#include <vector>

#include "headrace/finish/coded_rows.h"

namespace headrace {
namespace {

constexpr int64_t kLookedAt = 16;
constexpr size_t kMaxOfOne = size_t{8} << 20;

bool is_near(const Source& source) {
  return source.read_style() == ReadStyle::kMemory || source.read_style() == ReadStyle::kFiles;
}

}  // namespace

size_t slot_row_bytes(const Output& output, size_t number, const DeviceWork& left) {
  if (left.decodes(number)) return CodedRows::slot_row_bytes(output.state.shape, left.coded_row);
  return left.finishes(number) ? size_t(element_count(output.state.shape))
                               : output.bytes_per_record;
}

void mark_for_device(Record& record, const DeviceDecoding& log) {
  if (!log.trusts(record.index)) return;
  for (FieldValue& value : record.fields) {
    if (value.kind != FieldKind::kImage) continue;
    const EncodedImage* const picture = value.picture.encoded();
    if (picture && CodedRows::can_know_rows(*picture)) value.picture.leave_to_device();
  }
}

size_t coded_row_bytes(const Source& source, const Plan& plan) {
  const Schema& schema = source.schema();
  const int64_t count = std::min(kLookedAt, source.size());
  if (!is_near(source) || count == 0) return CodedRows::kUsualRow;
  std::vector<bool> wanted(schema.size());
  for (size_t field = 0; field < schema.size(); ++field) {
    wanted[field] =
        plan.wanted()[field] && schema[field].encoded && schema[field].kind == FieldKind::kImage;
  }
  size_t bytes = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = source.size() * i / count;
    RecordData record;
    source.read({&index, 1}, wanted, {&record, 1});
    if (!record.result) continue;  // the error is reported when the record is read for real
    size_t largest = 0;
    for (size_t field = 0; field < schema.size(); ++field) {
      if (wanted[field]) largest = std::max(largest, record.fields[field].bytes.size());
    }
    bytes += std::min(largest, kMaxOfOne);
  }
  return std::max(CodedRows::kUsualRow, bytes / size_t(count) / 8 * 9);
}

}  // namespace headrace
