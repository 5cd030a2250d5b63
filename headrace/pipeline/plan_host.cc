// SPDX-License-Identifier: Apache-2.0
// Crossing to functions in the host language and back.
//
// Note [What a function gives back]
// Shapes and dtypes are known before the first record is read, so a function's results must be
// promised. The promise is what most functions do: every field comes back as it went in (same kind,
// dtype and shape, where an open size may be any). A function that does otherwise declares it
// (HostFunction::returns()). A record whose value breaks the promise fails with HR0601, which says
// what was promised, what came and how to declare it; nothing is converted silently.
#include <algorithm>
#include <cstring>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/pipeline/plan.h"

namespace headrace {
namespace {

constexpr ErrorCode kBrokenPromise{
    "HR0601", ErrorKind::kConfig, "a function returned something else",
    "A function in the list of transforms is taken to give its fields back as they came: same "
    "dtype, "
    "same shape, except where records differ anyway. This one did not, and the batch was laid out "
    "for what it promised. Convert the result, or declare what the function returns."};
const Register<ErrorCode> registered_promise(kBrokenPromise);

constexpr ErrorCode kUndeclared{
    "HR0604", ErrorKind::kConfig, "a function returned an undeclared field",
    "A function may give back the fields that it takes, and new fields that it declares. This one "
    "returned a field that is neither."};
const Register<ErrorCode> registered_undeclared(kUndeclared);

constexpr const char* kDeclare = "T.Python(function, returns={...})";

bool is_picture(FieldKind kind) { return kind == FieldKind::kImage || kind == FieldKind::kMask; }

HostValue value_of(const FieldValue& field, const FieldState& state) {
  HostValue value;
  value.is_text = state.kind == FieldKind::kText;
  value.is_bytes = state.kind == FieldKind::kBytes;
  if (is_picture(state.kind)) {
    const std::shared_ptr<const Picture> picture = field.picture.pixels();
    value.view = {const_cast<uint8_t*>(picture->pixels.data()),
                  picture->dtype,
                  {picture->channels, picture->height, picture->width},
                  {}};
    return value;
  }
  const bool scalar = field.bytes.empty() && state.shape.empty() && state.dtype == DType::kInt64;
  const void* data = scalar ? static_cast<const void*>(&field.scalar) : field.bytes.data();
  value.view = {const_cast<void*>(data), state.dtype, {}, {}};
  if (value.is_text || value.is_bytes) {
    value.view.dtype = DType::kUInt8;
    value.view.shape = {static_cast<int64_t>(field.bytes.size())};
  } else {
    value.view.shape = field.shape.empty() ? state.shape : field.shape;
  }
  return value;
}

// What came, as messages show it.
std::string text_of_value(const HostValue& value) {
  if (value.is_text) return "text";
  if (value.is_bytes) return "bytes";
  return text_of(value.view.dtype, value.view.shape);
}

bool keeps(const FieldState& promise, const HostValue& value) {
  if (promise.kind == FieldKind::kText) return value.is_text;
  if (promise.kind == FieldKind::kBytes) return value.is_bytes;
  if (value.is_text || value.is_bytes || value.view.dtype != promise.dtype) return false;
  const auto fits = [](int64_t allowed, int64_t actual) {
    return actual >= 0 && (allowed < 0 || allowed == actual);
  };
  if (!std::ranges::equal(promise.shape, value.view.shape, fits)) return false;
  if (!is_picture(promise.kind)) return true;
  const Shape& shape = value.view.shape;
  return shape[0] >= 1 && shape[0] <= 4 && shape[1] >= 1 && shape[1] <= 1 << 20 && shape[2] >= 1 &&
         shape[2] <= 1 << 20;
}

Error broken(const Step& step, const FieldState& promise, const HostValue& value) {
  const bool dtype_alone = !value.is_text && !value.is_bytes && value.view.dtype != promise.dtype &&
                           value.view.shape.size() == promise.shape.size();
  const std::string convert =
      dtype_alone ? "return it with .astype(\"" + std::string(name_of(promise.dtype)) + "\"), or "
                  : "";
  return {.code = &kBrokenPromise,
          .what = "[" + step.function->name() + "] \"" + promise.name + "\" came back as " +
                  text_of_value(value) + ", promised was " + text_of(promise),
          .note = "in " + step.label,
          .hint = convert + "declare what it returns: " + kDeclare};
}

// The value's elements as a dense buffer; its own memory where it is that already.
Buffer dense_bytes(HostValue& value) {
  const TensorView& view = value.view;
  const size_t bytes = view.dense_bytes();
  if (view.strides.empty()) {
    if (value.owned.data() == view.data && value.owned.size() == bytes) {
      return std::move(value.owned);
    }
    Buffer out(bytes);
    if (bytes) std::memcpy(out.data(), view.data, bytes);
    return out;
  }
  Buffer out(bytes);
  const size_t item = size_of(view.dtype), rank = view.shape.size();
  std::vector<int64_t> at(rank);
  for (size_t done = 0; done < bytes; done += item) {
    int64_t offset = 0;
    for (size_t axis = 0; axis < rank; ++axis) offset += at[axis] * view.strides[axis];
    std::memcpy(out.data() + done,
                static_cast<const uint8_t*>(view.data) + offset * static_cast<int64_t>(item), item);
    for (size_t axis = rank; axis-- > 0 && ++at[axis] == view.shape[axis];) at[axis] = 0;
  }
  return out;
}

void store(HostValue& value, const FieldState& promise, FieldValue& field) {
  field.kind = promise.kind;
  if (is_picture(promise.kind)) {
    auto picture = std::make_shared<Picture>();
    picture->channels = static_cast<int>(value.view.shape[0]);
    picture->height = static_cast<int>(value.view.shape[1]);
    picture->width = static_cast<int>(value.view.shape[2]);
    picture->dtype = value.view.dtype;
    picture->pixels = dense_bytes(value);
    field.picture = Recipe(std::shared_ptr<const Picture>(std::move(picture)));
    return;
  }
  field.shape = promise.kind == FieldKind::kText || promise.kind == FieldKind::kBytes
                    ? Shape{}
                    : value.view.shape;
  field.owned = std::make_shared<const Buffer>(dense_bytes(value));
  field.bytes = field.owned->bytes();
  if (promise.dtype == DType::kInt64 && promise.shape.empty() && field.bytes.size() == 8) {
    std::memcpy(&field.scalar, field.bytes.data(), 8);
    field.bytes = {};
  }
}

}  // namespace

Result<HostCall> Plan::host_call(int at, Record& record, Renderer& renderer, uint64_t seed,
                                 uint64_t epoch) const {
  const Step& step = steps_[at];
  HostCall call{.inputs = {},
                .output_names = {},
                .outputs = {},
                .draws = Draws(seed, epoch, static_cast<uint64_t>(record.position), step.key),
                .result = {}};
  for (size_t i = 0; i < step.fields.size(); ++i) {
    FieldValue& field = record.fields[step.fields[i]];
    if (is_picture(field.kind) && !field.picture.pixels()) {
      if (Result<void> made = renderer.materialize(field.picture); !made) {
        return std::move(made.error());
      }
    }
    call.inputs.push_back(value_of(field, step.before[i]));
  }
  return call;
}

Result<void> Plan::host_return(int at, HostCall& call, Record& record) const {
  const Step& step = steps_[at];
  const bool named = !call.output_names.empty();
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const auto found = named ? std::ranges::find(step.output_names, call.output_names[i])
                             : step.output_names.begin() + std::min(i, step.output_names.size());
    if (found == step.output_names.end()) {
      return Error{.code = &kUndeclared,
                   .what = "[" + step.function->name() + "] returned " +
                           (named ? "\"" + call.output_names[i] + "\"" : "more than its fields"),
                   .note = "in " + step.label,
                   .hint = std::string("make it an argument, or declare it: ") + kDeclare};
    }
    const auto index = found - step.output_names.begin();
    if (!keeps(step.after[index], call.outputs[i])) {
      return broken(step, step.after[index], call.outputs[i]);
    }
    store(call.outputs[i], step.after[index], record.fields[step.output_fields[index]]);
  }
  return {};
}

}  // namespace headrace
