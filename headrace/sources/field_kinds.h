// SPDX-License-Identifier: Apache-2.0
// Kinds and row groups of fields, which containers do not specify: the user declares them, or they
// are inferred, mainly from the fields' names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// The meaning of a field: its kind, and the format of boxes.
struct Meaning {
  Meaning(FieldKind kind = FieldKind::kTensor) : kind(kind) {}
  FieldKind kind;
  BoxFormat box_format = BoxFormat::kUnspecified;
};
using Kinds = std::map<std::string, Meaning>;

// {"seg=mask", "boxes=boxes:xyxy"}: the form of kinds=. Throws Exception HR0181: unknown kind.
Kinds kinds_from(const std::vector<std::string>& said);

// The source with these kinds set. Throws Exception HR0181: unknown field, or values that do not
// fit the kind.
SourcePtr with_kinds(SourcePtr source, const Kinds& kinds);

// The kind inferred for a plain tensor from its name, its shape and the other fields of its record:
// boxes, keypoints, masks. Other fields keep their kind.
FieldKind evident_kind(const Field& field, const Schema& record);

// The source with the declared kinds, and the inferred ones for all other fields. `asks`: throw
// HR0182 for an image that is named like a mask, if its kind is not declared.
SourcePtr with_evident_kinds(SourcePtr source, const Kinds& said, bool asks = true);

// Throws HR0182 if the field's kind is image, but its name is a mask's.
void reject_mask_named_image(const Field& field);

// The source with these fields as one row group (Field::row_group): its fields lose rows only
// together. Throws Exception HR0187: an unknown field, one without rows, or one of another group.
SourcePtr with_row_group(SourcePtr source, const std::vector<std::string>& fields);

}  // namespace headrace
