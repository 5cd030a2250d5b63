// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/detection/joined_rows.h"

#include <string>
#include <vector>

#include "headrace/fields/rows.h"
#include "headrace/image/render.h"

namespace headrace {
namespace {

const ErrorCode kRecordsDiffer{
    "HR0514", ErrorKind::kData, "records cannot be concatenated",
    "Mosaic and CopyPaste concatenate the rows of several records, but in one of these records the "
    "fields of a row group differ in row count. That record would be bad on its own, too."};

const ErrorCode kRowsTooLarge{
    "HR0516", ErrorKind::kResource, "joined rows exceed the memory limit",
    "Mosaic and CopyPaste concatenate the rows of several records; instance masks over the whole "
    "canvas exceed one record's share of memory_limit. Use a smaller size, or a higher "
    "memory_limit."};

}  // namespace

Result<void> check_row_counts(const Record& record, std::span<const int> rows) {
  for (const int field : rows) {
    const int64_t first = row_count(record.fields[rows.front()]);
    const int64_t its = row_count(record.fields[field]);
    if (its == first) continue;
    return Error{.code = &kRecordsDiffer,
                 .what = "fields of a record have " + std::to_string(first) + " and " +
                         std::to_string(its) + " rows"};
  }
  return {};
}

Result<void> join_records(std::span<Record* const> records, std::span<const int> rows,
                          const Renderer& renderer) {
  for (const int field : rows) {
    std::vector<FieldValue*> parts;
    size_t bytes = 0;
    for (Record* record : records) {
      parts.push_back(&record->fields[field]);
      bytes += parts.back()->bytes.size();
    }
    if (bytes > renderer.largest_value()) {
      return Error{.code = &kRowsTooLarge,
                   .what = "the joined rows take " + std::to_string(bytes) + " bytes"};
    }
    join_rows(parts);
  }
  return {};
}

}  // namespace headrace
