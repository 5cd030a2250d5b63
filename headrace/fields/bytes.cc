// SPDX-License-Identifier: Apache-2.0
// Bytes of any length, as stored.
#include "headrace/base/registry.h"
#include "headrace/fields/numbers.h"

namespace headrace {
namespace {

bool take_bytes(Field& field) {
  if (!is_stored_bytes(field)) return false;
  field.kind = FieldKind::kBytes;
  field.encoded = false;
  field.shape = {};
  return true;
}

const KindRecord kBytes{.name = "bytes",
                        .doc = "Bytes of any length, as stored. Transforms do not change them.",
                        .kind = FieldKind::kBytes,
                        .form = ValueForm::kString,
                        .take = take_bytes,
                        .begin = begin_string};
const Register<KindRecord> registered_bytes(kBytes);

}  // namespace
}  // namespace headrace
