// SPDX-License-Identifier: Apache-2.0
// Patchify: an image becomes one row of numbers per patch.
#include <cstring>

#include "headrace/base/registry.h"
#include "headrace/ops/patches/patch_grid.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

const ErrorCode kTooManyPatches{
    "HR0592", ErrorKind::kResource, "patches exceed the memory limit",
    "The patches of an image would exceed one record's share of memory_limit. Use a smaller "
    "max_seq_len or max_pixels before Patchify, or raise memory_limit."};

// Row y of a patch: `count` samples of each channel, interleaved by pixel.
template <class Sample>
void interleave(const uint8_t* const* rows, int64_t channels, int64_t count, uint8_t* out) {
  auto* const to = reinterpret_cast<Sample*>(out);
  for (int64_t c = 0; c < channels; ++c) {
    const auto* const from = reinterpret_cast<const Sample*>(rows[c]);
    for (int64_t x = 0; x < count; ++x) to[x * channels + c] = from[x];
  }
}

class Patchify final : public Op {
 public:
  explicit Patchify(const PatchGrid& grid) : grid_(grid) {}
  bool takes(FieldKind kind) const override { return kind == FieldKind::kImage; }
  bool measures() const override { return true; }

  void plan(FieldState& field) const override {
    const int64_t values =
        is_picture(field.kind) && field.shape[0] > 0 ? grid_.values(field.shape[0]) : -1;
    plan_patches("Patchify", grid_, values, field.dtype, field);
  }

  Result<void> apply(OpContext& context) const override {
    for (const int field : context.fields) {
      FieldValue& value = context.record.fields[field];
      if (Result<void> fits = check_patches("Patchify", grid_, value.picture.size()); !fits) {
        return fits;
      }
      if (Result<void> small = check_memory(value.picture, context.renderer); !small) return small;
      if (Result<void> made = context.renderer.materialize(value.picture); !made) return made;
      const std::shared_ptr<const Picture> picture = value.picture.pixels();
      value.shape = {grid_.patches(picture->height, picture->width),
                     grid_.values(picture->channels)};
      const size_t bytes = size_t(element_count(value.shape)) * size_of(picture->dtype);
      std::shared_ptr<Buffer> made = context.renderer.values().of(bytes);
      write(*picture, made->data());
      value.kind = FieldKind::kTensor;
      value.dtype = picture->dtype;
      value.picture = Recipe();
      value.own(std::move(made));
    }
    return {};
  }

 private:
  Result<void> check_memory(const Recipe& picture, const Renderer& renderer) const {
    const Size size = picture.size();
    const size_t bytes = size_t(size.height) * size_t(size.width) * size_t(picture.channels()) *
                         size_t(grid_.frames) * size_of(picture.dtype());
    if (bytes <= renderer.largest_value()) return {};
    return Error{.code = &kTooManyPatches,
                 .what = "an image of " + text_of(size) + " has " + std::to_string(bytes) +
                         " bytes of patches"};
  }

  void write(const Picture& picture, uint8_t* out) const {
    const size_t item = size_of(picture.dtype);
    const size_t row = size_t(grid_.patch) * item;
    const Size size{picture.height, picture.width};
    for_each_patch(grid_, size, [&](PatchPosition at) {
      const auto line = [&](int channel, int64_t y) {
        const size_t pixel =
            size_t(at.y * grid_.patch + y) * size_t(picture.width) + size_t(at.x * grid_.patch);
        return picture.plane(channel) + pixel * item;
      };
      if (!grid_.channels_first) {
        for (int64_t y = 0; y < grid_.patch; ++y) {
          const uint8_t* lines[kMaxChannels];
          for (int c = 0; c < picture.channels; ++c) lines[c] = line(c, y);
          const auto write_line = item == 1   ? &interleave<uint8_t>
                                  : item == 2 ? &interleave<uint16_t>
                                              : &interleave<uint32_t>;
          write_line(lines, picture.channels, grid_.patch, out);
          out += row * size_t(picture.channels);
        }
        return;
      }
      for (int c = 0; c < picture.channels; ++c) {
        const uint8_t* const first = out;
        for (int64_t y = 0; y < grid_.patch; ++y, out += row) std::memcpy(out, line(c, y), row);
        const size_t frame = row * size_t(grid_.patch);
        for (int64_t t = 1; t < grid_.frames; ++t, out += frame) std::memcpy(out, first, frame);
      }
    });
  }

  const PatchGrid grid_;
};

const OpRecord kPatchify{
    .name = "Patchify",
    .doc =
        "Divides a record's images into square patches, one row of numbers each.\n\n"
        "Images, (C, H, W), any dtype, become tensors (patches, patch_size * patch_size * C), or "
        "with layout=\"qwen2-vl\" (patches, C * 2 * patch_size * patch_size); the dtype is "
        "unchanged. Put ToDtype and Normalize before it: they then run in the pass that decodes. "
        "An image whose edges are not multiples of patch_size is a bad record (HR0590). Images "
        "differ in their number of patches, so batches need the loader's ragged=\"pad\" or "
        "\"packed\". PatchCoordinates gives the patches' positions.",
    .page = {.unseen = "its result is not an image: [vision-language models](vision-language.md)"},
    .params = patch_params(),
    .oracle =
        "\"naflex\": timm's patchify_image and transformers' Siglip2ImageProcessor; \"qwen2-vl\": "
        "transformers' Qwen2VLImageProcessor; bit for bit",
    .example = {{"patch_size", int64_t{1}},
                {"layout", std::string("qwen2-vl")},
                {"merge_size", int64_t{1}}},
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<Patchify>(patch_grid_from("Patchify", arguments));
    }};
const Register<OpRecord> registered_patchify(kPatchify);

}  // namespace
}  // namespace headrace
