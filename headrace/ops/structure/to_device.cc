// SPDX-License-Identifier: Apache-2.0
// ToDevice: from here on the device works on the pictures.
#include "headrace/base/registry.h"
#include "headrace/ops/op.h"

namespace headrace {
namespace {

const OpRecord kToDevice{
    .name = "ToDevice",
    .doc =
        "Transforms before it run on the CPU, transforms after it on the device that batches "
        "are copied to: finish=\"device\" from this point on, and the same numbers.\n\n"
        "The images, (C, H, W) of uint8 with up to four channels, cross as bytes here. Behind it "
        "come RandomHorizontalFlip, lookup tables (AdjustBrightness, AdjustGamma, RandomPosterize, "
        "RandomSolarize, RandomInvert; RandomEqualize and the like, which a thread measures), "
        "ToDtype, Normalize, one RandomErasing of a value, MixUp and CutMix; any other transform that "
        "works on the images is refused with the names of those that can (HR0138). What makes a "
        "device's work impossible later (records of many shapes, no memory for it) is an error, too, "
        "and not left to the CPU as finish=\"auto\" does. As the first transform of a list it also says "
        "that decoding may be the device's, where decode= lets it; what cannot be decoded there is "
        "decoded on the CPU. finish=\"host\", and batches that stay on the host, leave all of it to "
        "the CPU. Other fields of the record are not touched.",
    .page = {.unseen = "it changes nothing: [on the GPU](gpu.md)"},
    .params = {},
    .oracle = "the list without it, bit for bit",
    .expand = [](const Arguments&, const Spec& spec, PlanBuilder& builder) {
      builder.to_device(spec.name);
    }};
const Register<OpRecord> registered_to_device(kToDevice);

}  // namespace
}  // namespace headrace
