// SPDX-License-Identifier: Apache-2.0
// RandomOrder: applies all of several transforms, in random order.
#include "headrace/base/registry.h"
#include "headrace/ops/structure/choices.h"

namespace headrace {
namespace {

const OpRecord kRandomOrder{
    .name = "RandomOrder",
    .doc =
        "Applies all of several transforms to each record, in random order.\n\n"
        "The transforms of an entry that is a list keep their order. If only one of them changes "
        "the shape, the resulting shape is known; otherwise the field counts as ragged after it. "
        "None may change a dtype, and each must accept any other's result.",
    .page = {.section = "Random choices",
             .step = "T.RandomOrder([T.RandomPosterize(2, p=1.0), T.RandomInvert(1.0)])"},
    .params = {lists_param()},
    .oracle = "torchvision v2's RandomOrder, in distribution",
    .example = {{"transforms",
                 std::vector<Branch>{{"", {{"RandomVerticalFlip"}}},
                                     {"", {{"RandomPosterize", {{"bits", int64_t{4}}}}}}}}},
    .random = true,
    .expand = [](const Arguments& arguments, const Spec&, PlanBuilder& builder) {
      const std::vector<Branch>& lists = lists_from(arguments);
      builder.choose("RandomOrder",
                     {.weights = std::vector<double>(lists.size(), 1.0),
                      .count = static_cast<int>(lists.size()),
                      .shuffled = true},
                     lists);
    }};
const Register<OpRecord> registered_random_order(kRandomOrder);

}  // namespace
}  // namespace headrace
