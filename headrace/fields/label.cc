// SPDX-License-Identifier: Apache-2.0
// Labels: the number of a class.
#include "headrace/base/registry.h"
#include "headrace/fields/numbers.h"

namespace headrace {
namespace {

const KindRecord kLabel{.name = "label",
                        .doc = "A class index: one int64. Transforms do not change it.",
                        .kind = FieldKind::kLabel,
                        .take =
                            [](Field& field) {
                              return field.dtype == DType::kInt64 && field.shape.empty() &&
                                     take_numbers(field, FieldKind::kLabel);
                            },
                        .begin = begin_numbers};
const Register<KindRecord> registered_label(kLabel);

}  // namespace
}  // namespace headrace
