// SPDX-License-Identifier: Apache-2.0
// Tensors: numbers that no step knows more of than their shape and dtype; one number is a scalar.
#include "headrace/base/registry.h"
#include "headrace/fields/numbers.h"

namespace headrace {
namespace {

const KindRecord kTensor{
    .name = "tensor",
    .doc = "Numbers of any dtype and shape, a single one too. Steps leave them alone.",
    .kind = FieldKind::kTensor,
    .take = [](Field& field) { return take_numbers(field, FieldKind::kTensor); },
    .begin = begin_numbers};
const Register<KindRecord> registered_tensor(kTensor);

}  // namespace
}  // namespace headrace
