// SPDX-License-Identifier: Apache-2.0
#include "headrace/pipeline/image_plan.h"

#include <algorithm>
#include <cstring>

#include "headrace/image/render_task.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

const ErrorCode kNotForEach{
    "HR0141", ErrorKind::kConfig, "transform not possible for each image of a row",
    "Each image of a packed row is processed by a plain list of transforms whose result size "
    "follows from the image's size. The list cannot contain Python functions, Fork, random choices "
    "between lists, or transforms that use other records; and the result size must be known, "
    "unless Patchify is the last transform. hr.packed() counts patches; without Patchify, "
    "image_tokens= specifies the number of tokens per image."};

const ErrorCode kOtherImage{
    "HR1459", ErrorKind::kData, "image changed since packing",
    "Rows were filled according to the image sizes in the headers at that time. Either this image "
    "has changed since then, or EachImage applies its Exif orientation and hr.packed() did not (or "
    "vice versa), or EachImage's transforms differ from image_transforms= of hr.packed()."};

constexpr const char* kField = "image";

std::shared_ptr<const Plan> plan_of(const std::vector<Spec>& transforms,
                                    const PictureOptions& options) {
  const Schema schema{{.name = kField,
                       .kind = FieldKind::kImage,
                       .dtype = DType::kUInt8,
                       .shape = {},
                       .encoded = true}};
  PlanOptions all;
  static_cast<PictureOptions&>(all) = options;
  all.ragged = Ragged::kList;
  return make_plan(schema, {.transforms = transforms, .by_field = {}, .dropped = {}}, all);
}

}  // namespace

ImagePlan::ImagePlan(const std::vector<Spec>& transforms, const PictureOptions& options)
    : plan_(plan_of(transforms, options)) {
  for (const Step& step : plan_->steps()) {
    if (step.kind != Step::Kind::kOp || step.op->partners() > 0) {
      raise(kNotForEach, step.label + " cannot be applied to each image of a row");
    }
  }
  if (!plan_->batch_steps().empty()) {
    raise(kNotForEach, plan_->batch_steps().front().label + " mixes rows of a batch");
  }
  if (std::ranges::count(part_shape(), -1) > 0) {
    raise(kNotForEach, "images become " + text_of(result()) + ", of different sizes",
          "put Patchify at the end, or Resize((height, width))");
  }
}

DType ImagePlan::dtype() const { return result().dtype; }

Shape ImagePlan::part_shape() const {
  const Shape& shape = result().shape;
  if (is_picture(result().kind)) return shape;
  return {shape.begin() + 1, shape.end()};
}

Result<ImageForm> ImagePlan::form(int64_t height, int64_t width) const {
  FieldState state = plan_->inputs().front();
  state.shape[1] = height;
  state.shape[2] = width;
  ImageForm form{.height = height, .width = width, .parts = 1};
  try {
    for (const Step& step : plan_->steps()) {
      step.op->plan(state);
      if (is_picture(state.kind)) {
        form.height = state.shape[1];
        form.width = state.shape[2];
      } else {
        form.parts = state.shape[0];
      }
    }
  } catch (const Exception& exception) {
    return Error{.what = exception.error().what};
  }
  if (form.height >= 0 && form.width >= 0 && form.parts >= 0) return form;
  return Error{.what = "its size after the transforms is not known from its header (" +
                       state.left_open_by + ")"};
}

Result<void> ImagePlan::apply(const RowImage& image, int64_t number, uint64_t seed,
                              Renderer& renderer, uint8_t* out) const {
  const auto other = [&](const std::string& what) {
    return Error{.code = &kOtherImage, .what = what};
  };
  RecordData data;
  data.fields.resize(1);
  data.fields[0].bytes = image.bytes;
  Record record;
  record.index = image.document;
  record.position = number;
  if (Result<void> begun = plan_->begin(data, record, renderer); !begun) return begun;
  FieldValue& value = record.fields[0];
  const Size size = value.picture.size();
  if (size.height != image.height || size.width != image.width) {
    return other("it has " + text_of(size) + ", but the packing expects " +
                 std::to_string(image.height) + " x " + std::to_string(image.width));
  }
  if (working_bytes(value.picture) > renderer.largest_value()) {
    return other("decoding it takes " + std::to_string(working_bytes(value.picture)) +
                 " bytes, which exceeds the memory limit");
  }
  if (Result<int> done = plan_->advance(0, record, renderer, seed, 0); !done) {
    return std::move(done.error());
  }
  const size_t part = static_cast<size_t>(element_count(part_shape())) * size_of(dtype());
  if (is_picture(value.kind)) {
    if (image.parts != 1) return other("it becomes one image, but the packing expects patches");
    RenderTask task{
        .recipe = &value.picture, .target = {.data = out, .batch = false}, .result = {}};
    renderer.render({&task, 1});
    return std::move(task.result);
  }
  const size_t bytes = static_cast<size_t>(image.parts) * part;
  if (value.bytes.size() != bytes) {
    return other("it becomes " + std::to_string(value.shape[0]) +
                 " patches, but the packing "
                 "expects " +
                 std::to_string(image.parts));
  }
  std::memcpy(out, value.bytes.data(), bytes);
  return {};
}

ImageRule image_rule(const std::vector<Spec>& transforms, int64_t tokens,
                     int64_t patches_per_token) {
  // shared: std::function must be copyable.
  const auto plan = transforms.empty()
                        ? nullptr
                        : std::make_shared<const ImagePlan>(transforms, PictureOptions{});
  if (plan && tokens == 0 && is_picture(plan->result().kind)) {
    raise(kNotForEach,
          "images become " + text_of(plan->result()) +
              ", not patches, so the number of their tokens is unknown",
          "put Patchify at the end of image_transforms, or pass image_tokens=");
  }
  return [=](int64_t height, int64_t width) -> Result<ImageForm> {
    constexpr int64_t kMost = DecodeLimits{}.max_pixels;
    if (height > kMost / width) {
      return Error{.what = std::to_string(height) + " x " + std::to_string(width) +
                           " pixels exceed the decoder's limit of " + std::to_string(kMost)};
    }
    Result<ImageForm> form = ImageForm{.height = height, .width = width, .parts = 1};
    if (plan) form = plan->form(height, width);
    if (!form) return form;
    form->tokens = tokens;
    if (tokens > 0) return form;
    if (form->parts % patches_per_token != 0) {
      return Error{.what = std::to_string(form->parts) + " patches are not a multiple of " +
                           std::to_string(patches_per_token) + " per token"};
    }
    form->tokens = form->parts / patches_per_token;
    return form;
  };
}

}  // namespace headrace
