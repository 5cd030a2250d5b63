// SPDX-License-Identifier: Apache-2.0
// RandomApply: applies a list of transforms with a probability.
#include "headrace/base/registry.h"
#include "headrace/ops/op.h"

namespace headrace {
namespace {

const OpRecord kRandomApply{
    .name = "RandomApply",
    .doc =
        "Applies a list of transforms with probability p, all of them or none.\n\n"
        "The resulting shape is known only if the list does not change it; otherwise the field "
        "counts as ragged after it. The list must not change a dtype.",
    .page = {.unseen = "it applies other transforms"},
    .params = {{.name = "transforms",
                .type = ParamType::kTransforms,
                .doc = "The transforms.",
                .required = true,
                .min_count = 1},
               {.name = "p",
                .type = ParamType::kFloat,
                .doc = "Probability of applying the transforms.",
                .fallback = 0.5,
                .minimum = 0,
                .maximum = 1}},
    .oracle = "torchvision v2's RandomApply, in distribution",
    .example = {{"transforms", std::vector<Branch>{{"", {{"RandomVerticalFlip", {{"p", 1.0}}}}}}}},
    .random = true,
    .expand = [](const Arguments& arguments, const Spec&, PlanBuilder& builder) {
      builder.append_with_probability(arguments.number("p"),
                                      arguments.branches("transforms").front().transforms);
    }};
const Register<OpRecord> registered_random_apply(kRandomApply);

}  // namespace
}  // namespace headrace
