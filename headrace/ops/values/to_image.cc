// SPDX-License-Identifier: Apache-2.0
// ToImage: does nothing; pictures are (C, H, W) tensors from the start.
#include "headrace/base/registry.h"
#include "headrace/ops/op.h"

namespace headrace {
namespace {

const OpRecord kToImage{.name = "ToImage",
                        .doc =
                            "Does nothing; for pipelines ported from torchvision.\n\n"
                            "Images are (C, H, W) uint8 tensors from the start.",
                        .page = {.unseen = "it changes nothing"},
                        .params = {},
                        .oracle = "torchvision v2's ToImage on a decoded image",
                        .expand = [](const Arguments&, const Spec&, PlanBuilder&) {}};
const Register<OpRecord> registered_to_image(kToImage);

}  // namespace
}  // namespace headrace
