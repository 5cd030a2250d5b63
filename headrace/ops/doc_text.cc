// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/doc_text.h"

namespace headrace {

std::string doc_text(const OpRecord& record) {
  std::string out(record.doc);
  if (!record.make || record.origin) return out;
  const std::unique_ptr<Op> op = record.make(Arguments(record.name, record.params, record.example));
  const FieldState boxes{"boxes", FieldKind::kBoxes, DType::kFloat32, {-1, 4}, {}};
  if (op->moves() && op->cannot_move(boxes).empty()) {
    out += "\n\nBoxes of a known format, keypoints and planes follow their images.";
  }
  return out;
}

}  // namespace headrace
