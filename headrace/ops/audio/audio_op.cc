// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/audio/audio_op.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

const ErrorCode kTooShort{
    "HR0540", ErrorKind::kData, "audio shorter than the clip",
    "RandomClip and CenterClip keep a fixed number of samples, but this audio has fewer samples. "
    "pad_if_needed=True appends silence, PadOrTrim always does; or skip such records (on_error=)."};

}  // namespace

Result<Waveform> samples_of(FieldValue& audio, Renderer& renderer) {
  if (Result<void> made = make_samples(audio, renderer); !made) return std::move(made.error());
  if (!audio.owned || audio.owned.use_count() > 1) {
    std::shared_ptr<Buffer> own = renderer.values().of(audio.bytes.size());
    if (!audio.bytes.empty()) std::memcpy(own->data(), audio.bytes.data(), own->size());
    audio.own(std::move(own));
  }
  // Exclusively owned here.
  auto* const samples = reinterpret_cast<float*>(const_cast<uint8_t*>(audio.owned->data()));
  return Waveform{samples, channels_of(audio), frames_of(audio)};
}

Result<void> take_frames(FieldValue& value, int64_t from, int64_t frames, Renderer& renderer) {
  const int64_t there = frames_of(value);
  if (from == 0 && frames == there) return {};
  if (value.audio.is_encoded()) {
    value.audio.cut(from, frames);
    return {};
  }
  (void)renderer;
  const int64_t channels = channels_of(value);
  const int64_t first = std::clamp<int64_t>(from, 0, there);
  const int64_t last = std::clamp<int64_t>(from + frames, first, there);
  Buffer out(static_cast<size_t>(channels * frames) * sizeof(float));
  std::memset(out.data(), 0, out.size());
  const size_t kept = static_cast<size_t>(last - first) * sizeof(float);
  for (int64_t c = 0; c < channels && kept > 0; ++c) {
    std::memcpy(out.data() + static_cast<size_t>(c * frames + first - from) * sizeof(float),
                value.bytes.data() + static_cast<size_t>(c * there + first) * sizeof(float), kept);
  }
  value.shape = {channels, frames};
  value.own(std::move(out));
  return {};
}

void AudioOp::plan(FieldState& field) const {
  if (field.kind != FieldKind::kAudio || field.dtype != DType::kFloat32) {
    raise_invalid_argument(
        name_,
        "\"" + field.name + "\" is " + text_of(field) + ", but the transform needs float32 audio",
        "put it before transforms whose result is not a waveform");
  }
  plan_audio(field);
}

Result<void> AudioOp::apply(OpContext& context) const {
  for (const int field : context.fields) {
    Result<void> done = apply_to(context.record.fields[static_cast<size_t>(field)], context.draws,
                                 context.renderer);
    if (!done) return done;
  }
  return {};
}

Result<void> WaveformOp::apply_to(FieldValue& audio, Draws draws, Renderer& renderer) const {
  Result<Waveform> waveform = samples_of(audio, renderer);
  if (!waveform) return std::move(waveform.error());
  return change(*waveform, draws);
}

void ClipOp::plan_audio(FieldState& audio) const {
  const int64_t there = audio.shape[1];
  if (!pads_ && there >= 0 && there < frames_) {
    raise_invalid_argument(name(),
                           "the clip has " + std::to_string(frames_) + " frames, but \"" +
                               audio.name + "\" " + std::to_string(there) + " at this point",
                           "use pad_if_needed=True, or a shorter clip");
  }
  audio.shape[1] = frames_;
}

bool ClipOp::predict_audio(Predicted& value, Draws) const {
  const bool long_enough = pads_ || value.shape[1] >= frames_;
  value.shape[1] = frames_;
  return long_enough;
}

Result<void> ClipOp::apply_to(FieldValue& audio, Draws draws, Renderer& renderer) const {
  const int64_t there = frames_of(audio);
  if (there < frames_ && !pads_) {
    return Error{.code = &kTooShort,
                 .what = "it has " + std::to_string(there) + " frames, but the clip has " +
                         std::to_string(frames_),
                 .hint = "pad_if_needed=True adds silence"};
  }
  return take_frames(audio, begin_of(there, draws), frames_, renderer);
}

Param num_frames_param() {
  return {.name = "num_frames",
          .type = ParamType::kInt,
          .doc = "Length in frames (samples per channel): seconds times the sample rate.",
          .required = true,
          .minimum = 1,
          .maximum = 1 << 30};
}

Param pad_if_needed_param(std::string_view doc) {
  return {.name = "pad_if_needed", .type = ParamType::kBool, .doc = doc, .fallback = false};
}

}  // namespace headrace
