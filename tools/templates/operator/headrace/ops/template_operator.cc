// SPDX-License-Identifier: Apache-2.0
// TemplateAdd: adds a number to labels.
#include "headrace/base/registry.h"
#include "headrace/ops/op.h"

namespace headrace {
namespace {

class TemplateAdd final : public Op {
 public:
  explicit TemplateAdd(int64_t number) : number_(number) {}
  bool takes(FieldKind kind) const override { return kind == FieldKind::kLabel; }
  void plan(FieldState&) const override {}
  Result<void> apply(OpContext& context) const override {
    for (int field : context.fields) context.record.fields[field].scalar += number_;
    return {};
  }

 private:
  const int64_t number_;
};

const OpRecord kTemplateAdd{
    .name = "TemplateAdd",
    .doc = "Adds a number to labels.\n\nint64 labels; the dtype is unchanged.",
    .page = {.unseen = "labels alone"},
    .params = {{.name = "number", .type = ParamType::kInt, .doc = "The addend.", .required = true}},
    .oracle = "NumPy's addition",
    .example = {{"number", int64_t{7}}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<TemplateAdd>(arguments.integer("number"));
    }};
const Register<OpRecord> registered_template_add(kTemplateAdd);

}  // namespace
}  // namespace headrace
