// SPDX-License-Identifier: Apache-2.0
// OneOf: applies one of several transforms, with a probability.
#include "headrace/base/registry.h"
#include "headrace/ops/pixel_op.h"
#include "headrace/ops/structure/choices.h"

namespace headrace {
namespace {

const OpRecord kOneOf{
    .name = "OneOf",
    .doc =
        "Applies one of several transforms, or lists of transforms, with probability p.\n\n"
        "A RandomChoice inside a RandomApply, under Albumentations' name. In Albumentations the p "
        "of each transform is its weight, and a chosen transform is always applied; here weights "
        "are a separate argument, and a chosen transform still applies its own p.",
    .page = {.section = "Random choices",
             .step = "T.OneOf([T.RandomInvert(1.0), T.RandomVerticalFlip(1.0)], p=0.8)"},
    .params = {lists_param(), probability_param("Probability of applying one of them."),
               weights_param("weights", "Relative weights; None: equal.")},
    .oracle = "Albumentations' OneOf, in distribution",
    .example = {{"transforms", std::vector<Branch>{{"", {{"RandomVerticalFlip", {{"p", 1.0}}}}},
                                                   {"", {{"RandomHorizontalFlip", {{"p", 1.0}}}}}}},
                {"weights", std::vector<double>{1, 2}}},
    .random = true,
    .expand = [](const Arguments& arguments, const Spec& spec, PlanBuilder& builder) {
      const double p = arguments.number("p");
      if (p < 1) {
        Spec always = spec;
        always.arguments["p"] = 1.0;
        always.fields.clear();  // inherits the enclosing fields
        return builder.append_with_probability(p, {always});
      }
      builder.choose("OneOf", {.weights = weights_from("OneOf", "weights", arguments)},
                     lists_from(arguments));
    }};
const Register<OpRecord> registered_one_of(kOneOf);

}  // namespace
}  // namespace headrace
