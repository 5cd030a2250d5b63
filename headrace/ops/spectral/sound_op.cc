// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/spectral/sound_op.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

const ErrorCode kCannotTake{
    "HR0545", ErrorKind::kData, "sound that the step cannot take",
    "A record's sound has a form that the step's definition leaves open: fewer frames than are "
    "mirrored at its ends, more channels than one where a step wants one, other bins than a filter "
    "bank is made for. Change the step's parameters, cut or pad sounds before it, or leave such "
    "records out (on_error=)."};

const ErrorCode kTooLarge{
    "HR0546", ErrorKind::kResource, "outcome of a sound exceeds the memory",
    "What the step makes of the sound takes more than memory_limit leaves for one record. Nothing "
    "was allocated. Cut the sound before it, take a larger hop, or raise memory_limit."};

std::string_view form_of(SoundOp::Takes what) {
  return what == SoundOp::Takes::kWaveform ? "float32 waveforms, (channels, frames)"
                                           : "float32 spectrograms, (channels, bins, frames)";
}

// Samples as numbers may be used: what a container lends may lie anywhere.
struct Samples {
  explicit Samples(std::span<const uint8_t> bytes) : at(bytes.data()) {
    if (reinterpret_cast<uintptr_t>(at) % alignof(float) == 0) return;
    copy.resize(bytes.size());
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    at = copy.data();
  }
  const float* floats() const { return reinterpret_cast<const float*>(at); }
  Buffer copy;
  const uint8_t* at;
};

// The value's own bytes, which nobody else has.
float* own_floats(FieldValue& value) {
  if (!value.owned || value.owned.use_count() > 1 || value.bytes.data() != value.owned->data()) {
    Buffer own(value.bytes.size());
    if (!value.bytes.empty()) std::memcpy(own.data(), value.bytes.data(), own.size());
    value.own(std::move(own));
  }
  return reinterpret_cast<float*>(const_cast<uint8_t*>(value.owned->data()));
}

}  // namespace

void raise_sound_misfit(std::string_view owner, const std::string& what, const std::string& hint) {
  raise_misfit(owner, what, hint);
}

bool SoundOp::takes(FieldKind kind) const { return kind == FieldKind::kTensor; }

void SoundOp::plan(FieldState& field) const {
  const size_t axes = takes_ == Takes::kWaveform ? 2 : 3;
  if (field.dtype != DType::kFloat32 || field.shape.size() != axes) {
    raise_misfit(name_,
                 "works on " + std::string(form_of(takes_)) + ", and \"" + field.name + "\" is " +
                     text_of(field),
                 "fields= names those that it is for");
  }
  const std::string reason = misfit(field.shape);
  if (!reason.empty()) raise_misfit(name_, "\"" + field.name + "\" " + reason);
  field.shape = shape_after(field.shape);
}

Result<void> SoundOp::apply(OpContext& context) const {
  for (const int field : context.fields) {
    Result<void> done = apply_to(context.record.fields[static_cast<size_t>(field)], context);
    if (!done) return done;
  }
  return {};
}

Result<void> SoundOp::apply_to(FieldValue& value, OpContext& context) const {
  if (const std::string reason = misfit(value.shape); !reason.empty()) {
    return Error{.code = &kCannotTake, .what = "[" + std::string(name_) + "] the sound " + reason};
  }
  const Shape before = value.shape, after = drawn_shape(before, context.draws);
  const auto room = static_cast<size_t>(element_count(after)) * sizeof(float);
  if (room > context.renderer.largest_value()) {
    return Error{.code = &kTooLarge,
                 .what = "[" + std::string(name_) + "] " + text_of(DType::kFloat32, after) +
                         " would take " + std::to_string(room >> 20) + " MiB"};
  }
  Draws draws = context.draws;
  const bool empty = element_count(before) == 0 || room == 0;
  if (in_place() && after == before) {
    if (empty) return {};
    float* const values = own_floats(value);
    compute({values, before, draws}, values);
    return {};
  }
  Buffer out(room);
  if (empty) {
    std::memset(out.data(), 0, room);
  } else {
    const Samples samples(value.bytes);
    compute({samples.floats(), before, draws}, reinterpret_cast<float*>(out.data()));
  }
  value.shape = after;
  value.own(std::move(out));
  return {};
}

}  // namespace headrace
