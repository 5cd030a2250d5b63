// SPDX-License-Identifier: Apache-2.0
// Images: pictures of one to four channels whose values are colors.
#include "headrace/base/registry.h"
#include "headrace/fields/media.h"
#include "headrace/fields/pictures.h"

namespace headrace {
namespace {

const KindRecord kImage{
    .name = "image",
    .doc =
        "An image: an encoded file, or (C, H, W) uint8. Geometric, color and dtype transforms "
        "apply to it.",
    .kind = FieldKind::kImage,
    .form = ValueForm::kPicture,
    .spatial = true,
    .color = ColorMode::kRGB,
    .media = "image",
    .take = [](Field& field) { return take_picture(field, FieldKind::kImage); },
    .begin = begin_picture,
    .follow = [](const FollowContext& way,
                 FieldValue& value) { return follow_picture(way, value); }};
const Register<KindRecord> registered_image(kImage);

// The number of first bytes that codecs inspect.
std::span<const uint8_t> signature_of(std::span<const uint8_t> bytes) {
  constexpr size_t kFirst = 16;
  return bytes.first(std::min(bytes.size(), kFirst));
}

const MediaRecord kImages{
    .name = "image",
    .kind = FieldKind::kImage,
    .noun = "image",
    .order = 0,
    .without_library = "PNG or JPEG",
    .usual = {"jpg", "jpeg", "webp"},
    // torchvision's IMG_EXTENSIONS, so that a folder's records are the same here and there.
    .more_suffixes = {".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"},
    .by_content = true,
    .formats = registered_formats<CodecRecord>,
    .format_of =
        [](std::span<const uint8_t> bytes) {
          const CodecRecord* const codec = codec_of(signature_of(bytes));
          return codec ? codec->name : std::string_view();
        },
    .begins = begins_like_image,
    .check = [](const ByteRanges& file, Renderer& renderer) -> Result<void> {
      Buffer memory;
      const Result<std::span<const uint8_t>> bytes = file.keep(0, file.size(), memory);
      if (!bytes) return bytes.error();
      const Result<EncodedImage> picture = renderer.open(*bytes, {});
      return picture ? Result<void>() : picture.error();
    }};
const Register<MediaRecord> registered_images(kImages);

}  // namespace
}  // namespace headrace
