// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <optional>

#include "headrace/base/parameters.h"
#include "headrace/sources/field_kinds.h"
#include "headrace/sources/source_around.h"

namespace headrace {
namespace {

const ErrorCode kBadRowGroup{
    "HR0187", ErrorKind::kConfig, "fields do not form a row group",
    "with_row_group(\"boxes\", \"labels\", \"masks\") declares that the rows of these fields "
    "describe the same objects, one row per object along the first axis. It takes arrays with "
    "equal numbers of rows that are not in another group."};

class SourceWithRowGroup final : public SourceAround {
 public:
  SourceWithRowGroup(SourcePtr inner, const std::vector<std::string>& names)
      : SourceAround(std::move(inner)), schema_(this->inner()->schema()) {
    uint8_t last = 0;
    for (const Field& field : schema_) last = std::max(last, field.row_group);
    if (last == std::numeric_limits<uint8_t>::max()) raise(kBadRowGroup, "there are 255 groups");
    std::optional<int64_t> rows;
    for (const std::string& name : names) {
      Field& field = member(name);
      if (rows && *rows >= 0 && field.shape[0] >= 0 && *rows != field.shape[0]) {
        raise(kBadRowGroup, "\"" + name + "\" has " + std::to_string(field.shape[0]) +
                                " rows in every record, but \"" + names[0] + "\" has " +
                                std::to_string(*rows));
      }
      if (!rows) rows = field.shape[0];
      field.row_group = static_cast<uint8_t>(last + 1);
    }
  }
  const Schema& schema() const override { return schema_; }

 private:
  Field& member(const std::string& name) {
    const auto field = std::ranges::find(schema_, name, &Field::name);
    if (field == schema_.end()) {
      std::vector<std::string_view> known;
      for (const Field& each : schema_) known.push_back(each.name);
      const std::string_view near = nearest_name(name, known);
      raise(kBadRowGroup, "there is no field \"" + name + "\"",
            near.empty() ? "" : "did you mean \"" + std::string(near) + "\"?");
    }
    if (is_picture(field->kind) || is_string(field->kind) || field->shape.empty()) {
      raise(kBadRowGroup,
            "\"" + name + "\" (" + std::string(name_of(field->kind)) + ") has no rows",
            "a stack of masks is kinds={\"" + name + "\": \"masks\"}");
    }
    if (field->row_group > 0) {
      raise(kBadRowGroup, "\"" + name + "\" already belongs to a row group, or is listed twice");
    }
    return *field;
  }

  Schema schema_;
};

}  // namespace

SourcePtr with_row_group(SourcePtr source, const std::vector<std::string>& fields) {
  return std::make_shared<SourceWithRowGroup>(std::move(source), fields);
}

}  // namespace headrace
