// SPDX-License-Identifier: Apache-2.0
// Passing values to Python functions and back.
//
// Note [What a function gives back]
// Shapes and dtypes are known before the first record is read, so a function's results must be
// declared. The default fits most functions: every field comes back in the same form (same kind,
// dtype and shape, where an unknown size may be any). A function that does otherwise declares it
// (PythonFunction::returns()). A record whose value differs from the declaration fails with HR0601,
// which says what was declared, what was returned and how to declare it; nothing is converted
// silently.
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "headrace/fields/audio.h"
#include "headrace/fields/numbers.h"
#include "headrace/pipeline/plan.h"

namespace headrace {
namespace {

const ErrorCode kBrokenPromise{
    "HR0601", ErrorKind::kConfig, "unexpected dtype or shape returned by a function",
    "A function in the list of transforms must return its fields with unchanged dtype and shape "
    "(the shape may vary if records differ in shape anyway), unless it declares otherwise. This "
    "function did not, but the batch was laid out for the declared or unchanged form. Convert the "
    "result, or declare what the function returns.",
    /*of_record=*/true};

const ErrorCode kUndeclared{
    "HR0604", ErrorKind::kConfig, "function returned an undeclared field",
    "A function may return its argument fields, and new fields that it declares. This function "
    "returned a field that is neither an argument nor declared.",
    /*of_record=*/true};

constexpr const char* kDeclare = "T.Python(function, returns={...})";

const ErrorCode kUnequalFrames{
    "HR0605", ErrorKind::kData, "frames differ in size",
    "A clip is passed to a function as one array of frames, but its frames differ in size or "
    "dtype: a transform applied to only some of its frames changed them. Apply that transform to "
    "the clip's field, which means all of its frames."};

// The pictures of a clip as one array of consecutive frames.
Result<PythonValue> clip_value(const CrossingValue& clip, std::span<const int> fields,
                               const Record& record) {
  const auto picture_of = [&](int field) { return record.fields[size_t(field)].picture.pixels(); };
  const std::shared_ptr<const Picture> first = picture_of(fields[0]);
  const Shape shape = {first->channels, first->height, first->width};
  const size_t bytes = size_t(element_count(shape)) * size_of(first->dtype);
  PythonValue value;
  value.kind = FieldKind::kVideo;
  value.owned.resize(bytes * fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::shared_ptr<const Picture> frame = picture_of(fields[i]);
    if (Shape{frame->channels, frame->height, frame->width} != shape ||
        frame->dtype != first->dtype) {
      return Error{.code = &kUnequalFrames,
                   .what = "frame " + std::to_string(i) + " is " + std::to_string(frame->width) +
                           " x " + std::to_string(frame->height) + ", but the first is " +
                           std::to_string(first->width) + " x " + std::to_string(first->height)};
    }
    std::memcpy(value.owned.data() + i * bytes, frame->pixels.data(), bytes);
  }
  value.view = {value.owned.data(), first->dtype, clip.leading, {}};
  value.view.shape.insert(value.view.shape.end(), shape.begin(), shape.end());
  return value;
}

PythonValue value_of(const FieldValue& field, const FieldState& state) {
  PythonValue value;
  value.is_text = state.kind == FieldKind::kText;
  value.is_bytes = state.kind == FieldKind::kBytes;
  value.kind = state.kind;
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

// The received value, as shown in messages.
std::string text_of_value(const PythonValue& value) {
  if (value.is_text) return "text";
  if (value.is_bytes) return "bytes";
  return text_of(value.view.dtype, value.view.shape);
}

bool keeps(const FieldState& promise, const PythonValue& value) {
  if (value.deferred && !is_picture(promise.kind)) return false;
  if (promise.kind == FieldKind::kText) return value.is_text;
  if (promise.kind == FieldKind::kBytes) return value.is_bytes;
  if (value.is_text || value.is_bytes || value.view.dtype != promise.dtype) return false;
  if (!allows(promise.shape, value.view.shape)) return false;
  if (!is_picture(promise.kind) && promise.kind != FieldKind::kVideo) return true;
  const std::span<const int64_t> shape = std::span(value.view.shape).last(3);
  return shape[0] >= 1 && shape[0] <= kMaxChannels && shape[1] >= 1 && shape[1] <= 1 << 20 &&
         shape[2] >= 1 && shape[2] <= 1 << 20;
}

// The required result for a value; for a clip, of all its pictures.
FieldState promise_of(const Step& step, const CrossingValue& value) {
  FieldState promise = step.after[value.first];
  if (!value.is_clip()) return promise;
  promise.kind = FieldKind::kVideo;
  promise.shape.insert(promise.shape.begin(), value.leading.begin(), value.leading.end());
  return promise;
}

// Whether a picture came back in a different size, so its contents moved.
bool moved(const Step& step, size_t index, const PythonValue& value, const Record& record) {
  if (index >= step.before.size() || !is_picture(step.before[index].kind)) return false;
  const Size before = record.fields[step.fields[index]].picture.size();
  const Shape& after = value.view.shape;
  const size_t axes = after.size();
  return axes >= 3 && (after[axes - 2] != before.height || after[axes - 1] != before.width);
}

// "(3, -1, -1)"
std::string python_text_of(const Shape& shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + (shape.size() == 1 ? ",)" : ")");
}

Error broken(const Step& step, const FieldState& promise, const PythonValue& value) {
  const bool dtype_alone = !value.is_text && !value.is_bytes && value.view.dtype != promise.dtype &&
                           value.view.shape.size() == promise.shape.size();
  std::string hint = std::string("declare what it returns: ") + kDeclare;
  if (!step.function->remedy().empty()) {
    hint = step.function->remedy();
  } else if (dtype_alone && is_floating(value.view.dtype) && !is_floating(promise.dtype)) {
    const bool pictures = is_picture(promise.kind) && value.view.dtype == DType::kFloat64;
    // Converted to integers, floats in 0 to 1 would all become 0 or 1, so the hint does not suggest
    // it.
    hint =
        "declare the floats: T.Python(function, returns={\"" + promise.name + "\": (\"" +
        std::string(name_of(pictures ? DType::kFloat32 : value.view.dtype)) + "\", " +
        python_text_of(allows(promise.shape, value.view.shape) ? promise.shape : value.view.shape) +
        ")})" + (pictures ? ", of images as float32" : "");
  } else if (dtype_alone) {
    hint = "return it with .astype(\"" + std::string(name_of(promise.dtype)) + "\"), or " + hint;
  }
  return {.code = &kBrokenPromise,
          .what = "[" + step.function->name() + "] \"" + promise.name + "\" was returned as " +
                  text_of_value(value) + ", expected " + text_of(promise),
          .note = "in " + step.label,
          .hint = std::move(hint)};
}

// The value's elements as a contiguous buffer; its own memory if it already is.
Buffer dense_bytes(PythonValue& value) {
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

void store(PythonValue& value, const FieldState& promise, FieldValue& field) {
  field.kind = promise.kind;
  field.dtype = promise.dtype;
  field.box_format = promise.box_format;
  field.clamping = promise.clamping;
  if (value.deferred) {
    field.picture = std::move(value.deferred->recipe);
    field.own(std::move(value.deferred->bytes));
    return;
  }
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
  const MediaOptions decoding = field.audio.decoding;
  field.audio = {};
  field.audio.decoding = decoding;
  field.shape = is_string(promise.kind) ? Shape{} : value.view.shape;
  field.own(dense_bytes(value));
  if (promise.dtype == DType::kInt64 && promise.shape.empty() && field.bytes.size() == 8) {
    std::memcpy(&field.scalar, field.bytes.data(), 8);
    field.bytes = {};
  }
}

// Frame by frame.
void store_clip(PythonValue& value, std::span<const int> fields, Record& record) {
  const Shape shape(value.view.shape.end() - 3, value.view.shape.end());
  const DType dtype = value.view.dtype;
  const Buffer all = dense_bytes(value);
  const size_t bytes = all.size() / fields.size();
  for (size_t i = 0; i < fields.size(); ++i) {
    auto picture = std::make_shared<Picture>();
    picture->channels = static_cast<int>(shape[0]);
    picture->height = static_cast<int>(shape[1]);
    picture->width = static_cast<int>(shape[2]);
    picture->dtype = dtype;
    picture->pixels.resize(bytes);
    std::memcpy(picture->pixels.data(), all.data() + i * bytes, bytes);
    record.fields[size_t(fields[i])].picture =
        Recipe(std::shared_ptr<const Picture>(std::move(picture)));
  }
}

// Null: the function may not return it.
const CrossingValue* value_named(const Step& step, std::string_view name) {
  for (const CrossingValue& value : step.values) {
    if (step.output_names[value.first] == name) return &value;
  }
  return nullptr;
}

}  // namespace

Result<PythonCall> Plan::python_call(int at, Record& record, Renderer& renderer, uint64_t seed,
                                     uint64_t epoch) const {
  const Step& step = parts_.steps[at];
  // A substitute has its own draws; otherwise a function that raises for these would raise for
  // every substitute.
  const uint64_t key =
      record.attempt > 0 ? mix64(step.key, static_cast<uint64_t>(record.attempt)) : step.key;
  PythonCall call{.inputs = {},
                  .fields = step.taken,
                  .output_names = {},
                  .outputs = {},
                  .draws = Draws(seed, epoch, static_cast<uint64_t>(record.position), key),
                  .result = {}};
  for (size_t i = 0; i < step.fields.size(); ++i) {
    FieldValue& field = record.fields[step.fields[i]];
    if (is_picture(field.kind) && !field.picture.pixels()) {
      if (Result<void> made = renderer.materialize(field.picture); !made) {
        return std::move(made.error());
      }
    }
    if (Result<void> made = make_samples(field, renderer); !made) return std::move(made.error());
  }
  for (const CrossingValue& value : std::span(step.values).first(step.taken.size())) {
    const auto fields = std::span(step.fields).subspan(value.first, value.count);
    if (!value.is_clip()) {
      call.inputs.push_back(value_of(record.fields[fields[0]], step.before[value.first]));
      continue;
    }
    Result<PythonValue> clip = clip_value(value, fields, record);
    if (!clip) return in_step(at, std::move(clip.error()));
    call.inputs.push_back(std::move(*clip));
  }
  return call;
}

Result<void> Plan::python_return(int at, PythonCall& call, Record& record) const {
  const Step& step = parts_.steps[at];
  const bool named = !call.output_names.empty();
  std::vector<int> returned;
  bool moves = false;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const CrossingValue* const value = named ? value_named(step, call.output_names[i])
                                       : i < step.values.size() ? &step.values[i]
                                                                : nullptr;
    if (!value) {
      return Error{.code = &kUndeclared,
                   .what = "[" + step.function->name() + "] returned " +
                           (named ? "\"" + call.output_names[i] + "\"" : "more than its fields"),
                   .note = "in " + step.label,
                   .hint = std::string("make it an argument, or declare it: ") + kDeclare};
    }
    const size_t index = value->first;
    const auto fields = std::span(step.output_fields).subspan(index, value->count);
    const FieldState promise = promise_of(step, *value);
    if (!keeps(promise, call.outputs[i])) return broken(step, promise, call.outputs[i]);
    returned.insert(returned.end(), fields.begin(), fields.end());
    moves |= !step.left_behind.empty() && moved(step, index, call.outputs[i], record);
    if (value->is_clip()) {
      store_clip(call.outputs[i], fields, record);
      continue;
    }
    FieldValue& field = record.fields[step.output_fields[index]];
    store(call.outputs[i], step.after[index], field);
    const bool keeps_shares = parts_.inputs[step.output_fields[index]].keeps_shares;
    const bool has_rows = keeps_shares && !field.shape.empty();
    // new rows start at 1
    field.shares.assign(has_rows ? static_cast<size_t>(field.shape[0]) : 0, 1.0f);
  }
  for (int field : step.left_behind) {
    if (moves && !std::ranges::count(returned, field)) return parts_.left_behind_error(step, field);
  }
  return {};
}

}  // namespace headrace
