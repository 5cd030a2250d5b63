// SPDX-License-Identifier: Apache-2.0
// Text: UTF-8, of any length.
#include "headrace/base/registry.h"
#include "headrace/fields/numbers.h"

namespace headrace {
namespace {

const KindRecord kText{.name = "text",
                       .doc = "UTF-8 text of any length. Transforms do not change it.",
                       .kind = FieldKind::kText,
                       .form = ValueForm::kString,
                       .take = [](Field& field) { return field.kind == FieldKind::kText; },
                       .begin = begin_string};
const Register<KindRecord> registered_text(kText);

}  // namespace
}  // namespace headrace
