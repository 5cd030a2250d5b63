// SPDX-License-Identifier: Apache-2.0
// RandomChoice: applies one of several transforms to each record.
#include <cmath>
#include <numeric>

#include "headrace/base/registry.h"
#include "headrace/ops/structure/choices.h"

namespace headrace {
namespace {

constexpr std::string_view kChoice = "RandomChoice";

// torchvision divides by the sum; probabilities that do not sum to 1 are more likely a mistake.
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
        "Applies one of several transforms, or lists of transforms, chosen at random for each "
        "record.\n\n"
        "Each entry has its own random draws, which do not change when an entry is added at the "
        "end. The resulting shape is known if all entries change it in the same way; otherwise the "
        "field counts as ragged after it. All must give the same dtype. If all entries are batch "
        "transforms (MixUp, CutMix), one is chosen for each group.",
    .page = {.section = "Random choices",
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
