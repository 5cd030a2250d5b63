// SPDX-License-Identifier: Apache-2.0
// Compose: a list in a list; for pipelines that come from torchvision.
#include "headrace/base/registry.h"
#include "headrace/ops/op.h"

namespace headrace {
namespace {

const OpRecord kCompose{
    .name = "Compose",
    .doc =
        "Applies the given transforms in order, as if they were listed directly.\n\n"
        "A pipeline is already a list; Compose allows torchvision's spelling.",
    .page = {.unseen = "it applies other transforms"},
    .params = {{.name = "transforms",
                .type = ParamType::kTransforms,
                .doc = "The transforms.",
                .required = true}},
    .oracle = "the list itself",
    .example = {{"transforms", std::vector<Branch>{{"", {{"RandomVerticalFlip", {{"p", 1.0}}}}}}}},
    .expand = [](const Arguments& arguments, const Spec&, PlanBuilder& builder) {
      const std::vector<Branch>& lists = arguments.branches("transforms");
      if (!lists.empty()) builder.append(lists.front().transforms);
    }};
const Register<OpRecord> registered_compose(kCompose);

}  // namespace
}  // namespace headrace
