// SPDX-License-Identifier: Apache-2.0
// The kinds of fields, where the container does not specify them: as the user says, or by name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// The meaning of a field: its kind, and for boxes the meaning of their numbers.
struct Meaning {
  Meaning(FieldKind kind = FieldKind::kTensor) : kind(kind) {}
  FieldKind kind;
  BoxFormat box_format = BoxFormat::kUnsaid;
};
using Kinds = std::map<std::string, Meaning>;

// {"seg=mask", "boxes=boxes:xyxy"}: the form of kinds=. Throws Exception HR0181: no such kind.
Kinds kinds_from(const std::vector<std::string>& said);

// The source with these fields of these kinds. Throws Exception HR0181: no such field, or values
// that cannot be of the kind.
SourcePtr with_kinds(SourcePtr source, const Kinds& kinds);

// The kind inferred for a plain tensor from its name, its shape and the other fields of its record:
// boxes, keypoints, masks. Other fields keep their kind.
FieldKind evident_kind(const Field& field, const Schema& record);

// The source with the declared kinds, and the inferred ones for all other fields. `asks`: HR0182
// for an image that is named like a mask, if its kind is not declared.
SourcePtr with_evident_kinds(SourcePtr source, const Kinds& said, bool asks = true);

// HR0182 for `field`, if it is an image by its kind and a mask by its name.
void ask_about_mask(const Field& field);

}  // namespace headrace
