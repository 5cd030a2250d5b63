// SPDX-License-Identifier: Apache-2.0
#include "headrace/plugin/plugin_view.h"

#include "headrace/fields/kind.h"

namespace headrace {
namespace {

constexpr struct {
  DType dtype;
  headrace_dtype form;
} kDtypes[] = {
    {DType::kUInt8, {HEADRACE_UINT, 8, 1}},     {DType::kInt8, {HEADRACE_INT, 8, 1}},
    {DType::kInt16, {HEADRACE_INT, 16, 1}},     {DType::kInt32, {HEADRACE_INT, 32, 1}},
    {DType::kInt64, {HEADRACE_INT, 64, 1}},     {DType::kUInt16, {HEADRACE_UINT, 16, 1}},
    {DType::kUInt32, {HEADRACE_UINT, 32, 1}},   {DType::kUInt64, {HEADRACE_UINT, 64, 1}},
    {DType::kFloat16, {HEADRACE_FLOAT, 16, 1}}, {DType::kBFloat16, {HEADRACE_BFLOAT, 16, 1}},
    {DType::kFloat32, {HEADRACE_FLOAT, 32, 1}}, {DType::kFloat64, {HEADRACE_FLOAT, 64, 1}},
    {DType::kBool, {HEADRACE_BOOL, 8, 1}},
};

}  // namespace

uint32_t plugin_kind(FieldKind kind) {
  switch (kind) {
    case FieldKind::kImage:
      return HEADRACE_IMAGE;
    case FieldKind::kMask:
      return HEADRACE_MASK;
    case FieldKind::kLabel:
      return HEADRACE_LABEL;
    case FieldKind::kTensor:
      return HEADRACE_TENSOR;
    case FieldKind::kBoxes:
      return HEADRACE_BOXES;
    case FieldKind::kKeypoints:
      return HEADRACE_KEYPOINTS;
    case FieldKind::kMasks:
      return HEADRACE_MASKS;
    case FieldKind::kAudio:
      return HEADRACE_AUDIO;
    default:
      return 0;
  }
}

PluginView::PluginView(FieldKind kind, const char* name, DType dtype, const Shape& shape)
    : kind_(kind) {
  const bool picture = is_picture(kind);
  const size_t axes = shape.size();
  for (size_t i = 0; i < axes; ++i) shape_[i] = shape[picture ? (i + 1) % 3 : i];
  field_.struct_size = sizeof field_;
  field_.kind = static_cast<int32_t>(plugin_kind(kind));
  field_.name = name;
  field_.view.device_type = 1;
  field_.view.ndim = static_cast<int32_t>(axes);
  field_.view.dtype = kDtypes[static_cast<int>(dtype)].form;
  field_.view.shape = shape_;
  field_.view.strides = strides_;
  field_.canvas_height = field_.canvas_width = -1;
  field_.box_format = "";
}

void PluginView::point_to(const void* data) {
  field_.view.data = const_cast<void*>(data);
  if (is_picture(kind_)) {  // planes
    strides_[0] = shape_[1];
    strides_[1] = 1;
    strides_[2] = shape_[0] * shape_[1];
    return;
  }
  int64_t stride = 1;
  for (int i = field_.view.ndim - 1; i >= 0; --i) {
    strides_[i] = stride;
    stride *= shape_[i];
  }
}

std::optional<Shape> PluginView::shape() const {
  const headrace_view& view = field_.view;
  if (view.ndim < 0 || view.ndim > HEADRACE_MAX_AXES || view.shape != shape_ || !dtype()) return {};
  if (is_picture(kind_) && view.ndim != 3) return {};
  Shape out;
  for (int i = 0; i < view.ndim; ++i) {
    if (shape_[i] < -1) return {};
    out.push_back(shape_[i]);
  }
  return is_picture(kind_) ? Shape{out[2], out[0], out[1]} : out;
}

std::optional<DType> dtype_from(const headrace_dtype& dtype) {
  for (const auto& each : kDtypes) {
    if (headrace_is(dtype, each.form.code, each.form.bits)) return each.dtype;
  }
  return {};
}

}  // namespace headrace
