// SPDX-License-Identifier: Apache-2.0
// Tensors: numbers of which transforms know only the shape and dtype; a single number is a scalar.
#include "headrace/base/registry.h"
#include "headrace/fields/numbers.h"

namespace headrace {
namespace {

const KindRecord kTensor{
    .name = "tensor",
    .doc = "Numbers of any dtype and shape, or a single number. Transforms do not change them.",
    .kind = FieldKind::kTensor,
    .take = [](Field& field) { return take_numbers(field, FieldKind::kTensor); },
    .begin = begin_numbers};
const Register<KindRecord> registered_tensor(kTensor);

}  // namespace
}  // namespace headrace
