// SPDX-License-Identifier: Apache-2.0
// Images: pictures of one to four channels whose values are colours.
#include "headrace/base/registry.h"
#include "headrace/fields/pictures.h"

namespace headrace {
namespace {

const KindRecord kImage{
    .name = "image",
    .doc =
        "A picture: an encoded file, or (C, H, W) uint8. Geometry, colours and dtypes are for "
        "it.",
    .kind = FieldKind::kImage,
    .form = ValueForm::kPicture,
    .spatial = true,
    .color = ColorMode::kRGB,
    .take = [](Field& field) { return take_picture(field, FieldKind::kImage); },
    .begin = begin_picture,
    .follow = [](const Following& way, FieldValue& value) { return follow_picture(way, value); }};
const Register<KindRecord> registered_image(kImage);

}  // namespace
}  // namespace headrace
