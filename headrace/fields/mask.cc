// SPDX-License-Identifier: Apache-2.0
// Masks: pictures of one channel whose values are class ids, which no filter may mix.
#include "headrace/base/registry.h"
#include "headrace/fields/pictures.h"

namespace headrace {
namespace {

const KindRecord kMask{
    .name = "mask",
    .doc =
        "An image of one channel whose values are class ids. It follows the images, is resized "
        "with the filter \"nearest\", and keeps its values.",
    .kind = FieldKind::kMask,
    .form = ValueForm::kPicture,
    .spatial = true,
    .color = ColorMode::kStored,
    .media = "image",
    .take = [](Field& field) { return take_picture(field, FieldKind::kMask); },
    .begin = begin_picture,
    .follow = [](const FollowContext& way,
                 FieldValue& value) { return follow_picture(way, value, Filter::kNearest); }};
const Register<KindRecord> registered_mask_kind(kMask);

}  // namespace
}  // namespace headrace
