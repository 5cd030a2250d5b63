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
    "A mosaic or a paste joins the rows of several records, and in one of these the fields of a "
    "row group differ in row count. That record is bad by itself too."};

const ErrorCode kRowsTooLarge{
    "HR0516", ErrorKind::kResource, "joined rows too large",
    "A mosaic or a paste joins the rows of several records, and instance masks over its whole "
    "canvas exceed what memory_limit leaves for one record. Use a smaller size, or a higher "
    "memory_limit."};

}  // namespace

Result<void> check_row_counts(const Record& record, std::span<const int> rows) {
  for (const int field : rows) {
    const int64_t first = row_count(record.fields[rows.front()]);
    const int64_t its = row_count(record.fields[field]);
    if (its == first) continue;
    return Error{
        .code = &kRecordsDiffer,
        .what = "one has " + std::to_string(first) + " and " + std::to_string(its) + " rows"};
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
      return Error{.code = &kRowsTooLarge, .what = "they take " + std::to_string(bytes) + " bytes"};
    }
    join_rows(parts);
  }
  return {};
}

}  // namespace headrace
