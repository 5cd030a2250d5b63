// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/spectral/spectral_op.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "headrace/ops/audio/audio_op.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

const ErrorCode kCannotTake{
    "HR0545", ErrorKind::kData, "unsupported audio for the transform",
    "A record's audio does not meet the transform's requirements: it has fewer samples than are "
    "reflected at its ends, several channels where one is needed, a different number of bins than "
    "the filter bank, or a different sample rate. Change the transform's parameters, clip, pad or "
    "resample the audio before it, or skip such records (on_error=)."};

const ErrorCode kTooLarge{
    "HR0546", ErrorKind::kResource, "audio result exceeds the memory limit",
    "The transform's result would exceed one record's share of memory_limit. Nothing was "
    "allocated. Clip the audio first, use a larger hop, or raise memory_limit."};

std::string_view form_of(SpectralOp::Takes what) {
  return what == SpectralOp::Takes::kWaveform ? "float32 waveforms, (channels, frames)"
                                              : "float32 spectrograms, (channels, bins, frames)";
}

}  // namespace

SamplesIn::SamplesIn(const FieldValue& value) {
  const uint8_t* from = value.bytes.data();
  // containers lend unaligned memory
  if (reinterpret_cast<uintptr_t>(from) % alignof(float) != 0) {
    copy_.resize(value.bytes.size());
    std::memcpy(copy_.data(), from, value.bytes.size());
    from = copy_.data();
  }
  at_ = reinterpret_cast<const float*>(from);
}

Error cannot_take(std::string_view owner, const std::string& reason) {
  return {.code = &kCannotTake, .what = "[" + std::string(owner) + "] the audio " + reason};
}

Result<void> check_outcome(std::string_view owner, const Shape& shape, const Renderer& renderer) {
  const auto bytes = static_cast<size_t>(element_count(shape)) * sizeof(float);
  if (bytes <= renderer.largest_value()) return {};
  return Error{.code = &kTooLarge,
               .what = "[" + std::string(owner) + "] " + text_of(DType::kFloat32, shape) +
                       " would take " + std::to_string(bytes >> 20) + " MiB"};
}

bool SpectralOp::takes(FieldKind kind) const {
  return kind == (takes_ == Takes::kWaveform ? FieldKind::kAudio : FieldKind::kTensor);
}

bool SpectralOp::fits(const FieldState& field) const {
  const bool tensor = field.kind == FieldKind::kTensor, waveform = takes_ == Takes::kWaveform;
  return (tensor || (waveform && takes(field.kind))) && field.dtype == DType::kFloat32 &&
         field.shape.size() == (waveform ? 2 : 3);
}

std::string SpectralOp::rate_mismatch(int sample_rate) const {
  if (rate_ == 0 || sample_rate == 0 || sample_rate == rate_) return {};
  return "has " + std::to_string(sample_rate) + " Hz, but the transform is configured for " +
         std::to_string(rate_) + ": Resample(new_freq=" + std::to_string(rate_) + ") before it";
}

void SpectralOp::plan(FieldState& field) const {
  if (!fits(field)) {
    raise_invalid_argument(name_,
                           "works on " + std::string(form_of(takes_)) + ", but \"" + field.name +
                               "\" is " + text_of(field),
                           "select audio fields with fields=");
  }
  std::string reason = misfit(field.shape);
  const bool rate_known = field.sample_rate != 0 || field.kind == FieldKind::kTensor;
  if (reason.empty() && rate_known) reason = rate_mismatch(field.sample_rate);
  if (!reason.empty()) raise_invalid_argument(name_, "\"" + field.name + "\" " + reason);
  field.shape = shape_after(field.shape);
  if (!outputs_audio()) field.kind = FieldKind::kTensor;
  field.sample_rate = field.kind == FieldKind::kAudio ? rate_after(field.sample_rate) : 0;
}

bool SpectralOp::predict(Predicted& value, Draws draws) const {
  if (!rate_mismatch(value.sample_rate).empty() || !misfit(value.shape).empty()) return false;
  value.shape = shape_at({value.sample_rate, draws}, value.shape);
  value.sample_rate = outputs_audio() ? rate_after(value.sample_rate) : 0;
  return true;
}

Result<void> SpectralOp::apply(OpContext& context) const {
  for (const int field : context.fields) {
    Result<void> done = apply_to(context.record.fields[static_cast<size_t>(field)], context);
    if (!done) return done;
  }
  return {};
}

Result<void> SpectralOp::apply_to(FieldValue& value, OpContext& context) const {
  if (const std::string reason = rate_mismatch(value.sample_rate); !reason.empty()) {
    return cannot_take(name_, reason);
  }
  if (Result<void> made = make_samples(value, context.renderer); !made) return made;
  if (const std::string reason = misfit(value.shape); !reason.empty()) {
    return cannot_take(name_, reason);
  }
  const At at{value.sample_rate, context.draws, &context.renderer.values()};
  const Shape before = value.shape, after = shape_at(at, before);
  if (Result<void> fits = check_outcome(name_, after, context.renderer); !fits) return fits;
  if (!outputs_audio()) value.kind = FieldKind::kTensor;
  value.sample_rate = value.kind == FieldKind::kAudio ? rate_after(value.sample_rate) : 0;
  const bool empty = element_count(before) == 0 || element_count(after) == 0;
  if (in_place(at) && after == before) {
    if (empty) return {};
    Result<Waveform> own = samples_of(value, context.renderer);
    if (!own) return std::move(own.error());
    compute(at, own->samples, before, own->samples);
    return {};
  }
  const auto bytes = static_cast<size_t>(element_count(after)) * sizeof(float);
  std::shared_ptr<Buffer> out = context.renderer.values().of(bytes);
  if (empty) {
    std::memset(out->data(), 0, bytes);
  } else {
    compute(at, SamplesIn(value).floats(), before, reinterpret_cast<float*>(out->data()));
  }
  value.shape = after;
  value.own(std::move(out));
  return {};
}

}  // namespace headrace
