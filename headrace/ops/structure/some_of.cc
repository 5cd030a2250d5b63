// SPDX-License-Identifier: Apache-2.0
// SomeOf: applies some of several transforms, with a probability.
#include <algorithm>
#include <string>

#include "headrace/base/registry.h"
#include "headrace/ops/pixel_op.h"
#include "headrace/ops/structure/choices.h"

namespace headrace {
namespace {

const OpRecord kSomeOf{
    .name = "SomeOf",
    .doc =
        "Applies n of several transforms, or lists of transforms, with probability p.\n\n"
        "Without replacement they are distinct and applied in the order of the list; with "
        "replacement each is drawn independently and they are applied in the order drawn. As with "
        "RandomApply, a field whose shape may change counts as ragged after it, and no transform "
        "may change a dtype. In Albumentations the p of each transform is its weight; here weights "
        "are a separate argument, and a chosen transform still applies its own p.",
    .page = {.section = "Random choices",
             .step = "T.SomeOf([T.RandomInvert(1.0), T.RandomVerticalFlip(1.0), "
                     "T.RandomHorizontalFlip(1.0)], n=2, p=1.0)"},
    .params = {lists_param(),
               {.name = "n",
                .type = ParamType::kInt,
                .doc = "Number of transforms to apply.",
                .fallback = int64_t{1},
                .minimum = 1,
                .maximum = 64},
               {.name = "replace",
                .type = ParamType::kBool,
                .doc = "Whether one may be applied more than once.",
                .fallback = false},
               probability_param("Probability of applying them.", 1),
               weights_param("weights", "Relative weights; None: equal.")},
    .oracle = "Albumentations' SomeOf, in distribution",
    .example = {{"transforms", std::vector<Branch>{{"", {{"RandomVerticalFlip", {{"p", 1.0}}}}},
                                                   {"", {{"RandomInvert", {{"p", 1.0}}}}},
                                                   {"", {{"RandomHorizontalFlip", {{"p", 1.0}}}}}}},
                {"n", int64_t{2}},
                {"replace", true},
                {"weights", std::vector<double>{1, 2, 2}}},
    .random = true,
    .expand = [](const Arguments& arguments, const Spec& spec, PlanBuilder& builder) {
      const double p = arguments.number("p");
      if (p < 1) {
        Spec always = spec;
        always.arguments["p"] = 1.0;
        always.fields.clear();  // inherits the enclosing fields
        return builder.append_with_probability(p, {always});
      }
      const std::vector<Branch>& lists = lists_from(arguments);
      const std::vector<double> weights = weights_from("SomeOf", "weights", arguments);
      const int n = static_cast<int>(arguments.integer("n"));
      if (arguments.flag("replace")) {
        for (int i = 0; i < n; ++i) builder.choose("SomeOf", {.weights = weights}, lists);
        return;
      }
      const auto possible = std::ranges::count_if(weights, [](double w) { return w > 0; });
      if (n > possible) {
        raise_bad_weights("SomeOf",
                          "n is " + std::to_string(n) + ", but only " + std::to_string(possible) +
                              " of the transforms can be drawn",
                          "pass replace=True to allow repetitions");
      }
      builder.choose("SomeOf", {.weights = weights, .count = n}, lists);
    }};
const Register<OpRecord> registered_some_of(kSomeOf);

}  // namespace
}  // namespace headrace
