// SPDX-License-Identifier: Apache-2.0
// Fork: several views of one field, each with its own transforms and draws.
#include "headrace/base/registry.h"
#include "headrace/ops/op.h"

namespace headrace {
namespace {

const OpRecord kFork{
    .name = "Fork",
    .doc =
        "Replaces a field with several independently transformed copies.\n\n"
        "Fork(\"image\", view1=[...], view2=[...]) gives the fields view1 and view2 in place of "
        "image. Each list sees only its own copy and has its own random draws: equal lists give "
        "different views. The field is read once; each branch decodes only the part that it needs, "
        "or all share one decode if that costs less.",
    .page = {.unseen = "it splits a field into several: [fields](fields.md)"},
    .params = {{.name = "field",
                .type = ParamType::kString,
                .doc = "The field to replace.",
                .required = true},
               {.name = "branches",
                .type = ParamType::kBranches,
                .doc = "A list of transforms for each new field, as keyword arguments.",
                .required = true,
                .min_count = 1}},
    .oracle = "the same list alone, with the same draws",
    .example = {{"field", std::string("image")},
                {"branches", std::vector<Branch>{{"one", {{"RandomVerticalFlip"}}}, {"two", {}}}}},
    .expand = [](const Arguments& arguments, const Spec&, PlanBuilder& builder) {
      builder.fork(arguments.text("field"), arguments.branches("branches"));
    }};
const Register<OpRecord> registered_fork(kFork);

}  // namespace
}  // namespace headrace
