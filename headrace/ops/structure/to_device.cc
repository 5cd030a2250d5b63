// SPDX-License-Identifier: Apache-2.0
// ToDevice: from this point on the device processes the pictures.
#include "headrace/base/registry.h"
#include "headrace/ops/op.h"

namespace headrace {
namespace {

const OpRecord kToDevice{
    .name = "ToDevice",
    .doc =
        "Runs all later transforms on the device that batches are copied to, as with "
        "finish=\"device\"; the values are the same.\n\n"
        "Images, (C, H, W) uint8 with up to four channels, are copied as bytes at this point. It "
        "may be followed by RandomHorizontalFlip, lookup tables (AdjustBrightness, AdjustGamma, "
        "RandomPosterize, RandomSolarize, RandomInvert; RandomEqualize and the like, whose "
        "statistics are computed on the CPU), ToDtype, Normalize, one RandomErasing with a fixed "
        "value, MixUp and CutMix; any other transform of the images is rejected with a list of "
        "those that are possible (HR0138). If the device cannot do the work later (records of "
        "different shapes, not enough memory), that is an error too; unlike with finish=\"auto\", "
        "the CPU does not take over. As the first transform of a list it also allows decoding on "
        "the device, subject to decode=; what cannot be decoded there is decoded on the CPU. With "
        "finish=\"cpu\", or if batches stay on the host, all of it runs on the CPU. Other fields "
        "of the record are not touched.",
    .page = {.unseen = "it changes no pixels: [GPU](gpu.md)"},
    .params = {},
    .oracle = "the list without it, bit for bit",
    .expand = [](const Arguments&, const Spec& spec, PlanBuilder& builder) {
      builder.to_device(spec.name);
    }};
const Register<OpRecord> registered_to_device(kToDevice);

}  // namespace
}  // namespace headrace
