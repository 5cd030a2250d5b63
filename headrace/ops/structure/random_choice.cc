// SPDX-License-Identifier: Apache-2.0
// RandomChoice: each record takes one of several transforms.
#include <cmath>
#include <numeric>

#include "headrace/base/registry.h"
#include "headrace/ops/structure/choices.h"

namespace headrace {
namespace {

constexpr std::string_view kChoice = "RandomChoice";

// torchvision divides by the sum; a vector that does not sum to 1 is a slip more often than meant.
std::vector<double> choice_probabilities(const Arguments& arguments) {
  std::vector<double> p = weights_from(kChoice, "p", arguments);
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  if (std::abs(sum - 1) > 1e-6) {
    raise_bad_weights(kChoice, "p sums to " + text_of(ParamValue(sum)) + ", not to 1",
                      "divide each by the sum");
  }
  return p;
}

const OpRecord kRandomChoice{
    .name = "RandomChoice",
    .doc =
        "Each record takes one of several transforms, or lists of transforms.\n\n"
        "Each has its own random draws, which an entry added at the end does not change. "
        "Shapes after it are known if all change them alike; "
        "otherwise the field counts as ragged after it. All leave the same dtype. It may contain "
        "batch transforms (MixUp, "
        "CutMix), "
        "by themselves: then each group takes one.",
    .page = {.section = "Choices",
             .step = "T.RandomChoice([T.RandomInvert(1.0), T.RandomVerticalFlip(1.0)])"},
    .params = {lists_param(),
               weights_param("p", "Probabilities, with a sum of 1; None: all equal.")},
    .oracle = "torchvision v2's RandomChoice, in distribution",
    .example = {{"transforms", std::vector<Branch>{{"", {{"RandomVerticalFlip", {{"p", 1.0}}}}},
                                                   {"",
                                                    {{"RandomHorizontalFlip", {{"p", 1.0}}},
                                                     {"RandomInvert", {{"p", 1.0}}}}}}},
                {"p", std::vector<double>{0.25, 0.75}}},
    .random = true,
    .expand = [](const Arguments& arguments, const Spec&, PlanBuilder& builder) {
      builder.choose(kChoice, {.weights = choice_probabilities(arguments)}, lists_from(arguments));
    }};
const Register<OpRecord> registered_random_choice(kRandomChoice);

}  // namespace
}  // namespace headrace
