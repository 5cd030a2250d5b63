// SPDX-License-Identifier: Apache-2.0
// Shared by audio operators. Use mono.cc as a template for operators on samples, center_clip.cc for
// operators that only choose a part of the audio.
//
// Note [Audio values]
// The field's state is (channels, frames), float32, and has the sample rate; frames is -1 if
// records differ. A value is an AudioClip until samples are needed: trimming and padding edit it,
// so that the codec decodes only what remains. samples_of() decodes; from then on `bytes` are
// float32 (channels, frames), of `shape`, at `sample_rate` frames per second. Operators whose
// result is not a waveform (a spectrogram) make the field a tensor, in plan() and in apply().
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "headrace/fields/audio.h"
#include "headrace/ops/op.h"

namespace headrace {

// Samples that the step may change; channel c begins at c * frames.
struct Waveform {
  float* samples = nullptr;
  int64_t channels = 0, frames = 0;
  std::span<float> channel(int64_t c) const {
    return {samples + c * frames, static_cast<size_t>(frames)};
  }
};

// The value's samples, decoded and copied if necessary, so that no branch of a Fork shares them.
Result<Waveform> samples_of(FieldValue& audio, Renderer& renderer);

// Replaces the value with its frames [from, from + frames); frames outside of it are silence.
Result<void> take_frames(FieldValue& value, int64_t from, int64_t frames, Renderer& renderer);

// Acts on each audio field of a record in the same way.
class AudioOp : public Op {
 public:
  explicit AudioOp(std::string_view name) : name_(name) {}
  bool takes(FieldKind kind) const final { return kind == FieldKind::kAudio; }
  // HR0510 unless the field is float32 audio.
  void plan(FieldState& field) const final;
  // Random draws are the same for every field.
  Result<void> apply(OpContext& context) const final;
  bool predict(Predicted& value, Draws draws) const final { return predict_audio(value, draws); }

 protected:
  std::string_view name() const { return name_; }
  // See Op::predict.
  virtual bool predict_audio(Predicted& value, Draws draws) const {
    (void)value, (void)draws;
    return false;
  }
  virtual void plan_audio(FieldState& audio) const { (void)audio; }
  virtual Result<void> apply_to(FieldValue& audio, Draws draws, Renderer& renderer) const = 0;

 private:
  const std::string_view name_;
};

// An operator that needs the samples.
class WaveformOp : public AudioOp {
 public:
  using AudioOp::AudioOp;
  bool measures() const final { return true; }
  Rate rate() const override { return Rate::kAny; }

 protected:
  // Changes samples in place; the shape is kept.
  virtual Result<void> change(const Waveform& waveform, Draws draws) const = 0;
  bool predict_audio(Predicted&, Draws) const override { return true; }
  Result<void> apply_to(FieldValue& audio, Draws draws, Renderer& renderer) const override;
};

// An operator that keeps a fixed number of frames.
class ClipOp : public AudioOp {
 public:
  ClipOp(std::string_view name, int64_t frames, bool pads)
      : AudioOp(name), frames_(frames), pads_(pads) {}

 protected:
  // Where the clip begins; may be before the start of the audio.
  virtual int64_t begin_of(int64_t frames, Draws draws) const = 0;
  int64_t clip_frames() const { return frames_; }
  void plan_audio(FieldState& audio) const override;
  bool predict_audio(Predicted& value, Draws draws) const override;
  Result<void> apply_to(FieldValue& audio, Draws draws, Renderer& renderer) const override;

 private:
  const int64_t frames_;
  const bool pads_;
};

Param num_frames_param();
Param pad_if_needed_param(std::string_view doc);

}  // namespace headrace
