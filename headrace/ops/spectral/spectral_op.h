// SPDX-License-Identifier: Apache-2.0
// Shared by operators that compute on audio: dense float32 in, dense float32 out, with a shape
// computed from the input shape. Use amplitude_to_db.cc as a template.
//
// A waveform is audio (Note [Audio values]), (channels, frames), or a tensor of that shape listed
// in fields=; a spectrogram is a tensor, (channels, bins, frames). If the plan knows an input's
// shape, it also knows the shape of the result, so clips of equal length make dense batches.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/ops/op.h"

namespace headrace {

class SpectralOp : public Op {
 public:
  enum class Takes : uint8_t { kWaveform, kSpectrogram };

  bool takes(FieldKind kind) const final;
  bool fits(const FieldState& field) const final;
  bool measures() const final { return takes_ == Takes::kWaveform; }
  Rate rate() const override { return rate_ == 0 ? Rate::kAny : Rate::kOne; }
  void plan(FieldState& field) const final;
  bool predict(Predicted& value, Draws draws) const final;
  Result<void> apply(OpContext& context) const final;

 protected:
  // `rate`: the sample rate it is designed for; 0: any.
  SpectralOp(std::string_view name, Takes what, int rate = 0)
      : name_(name), takes_(what), rate_(rate) {}
  std::string_view name() const { return name_; }

  // The output shape; -1 for unknown extents, in and out.
  virtual Shape shape_after(const Shape& shape) const { return shape; }
  // A record at the step: its audio's sample rate, 0 if unknown; draws, which are the same for
  // every field; scratch memory for compute(), which is only set there.
  struct At {
    int sample_rate;
    Draws draws;
    ValueMemory* memory = nullptr;
  };
  // The shape for one record, if it depends on the record.
  virtual Shape shape_at(const At& at, const Shape& shape) const {
    (void)at;
    return shape_after(shape);
  }
  // Why a value of this shape is not accepted; "" if it is. -1: not known yet.
  virtual std::string misfit(const Shape& shape) const {
    (void)shape;
    return {};
  }
  // The same for its sample rate.
  virtual std::string rate_mismatch(int sample_rate) const;
  // Whether the result of audio is audio too, and at which rate.
  virtual bool outputs_audio() const { return false; }
  virtual int rate_after(int sample_rate) const { return sample_rate; }
  // Whether the result is computed in place: `in` may be `out`.
  virtual bool in_place(const At& at) const {
    (void)at;
    return false;
  }
  // REQUIRES: room for shape_at(...) at `out`; no extent of `shape` is 0.
  virtual void compute(const At& at, const float* in, const Shape& shape, float* out) const = 0;

 private:
  Result<void> apply_to(FieldValue& value, OpContext& context) const;

  const std::string_view name_;
  const Takes takes_;
  const int rate_;
};

// Samples of a value that a step reads, aligned for floats. REQUIRES: the value outlives it.
class SamplesIn {
 public:
  explicit SamplesIn(const FieldValue& value);
  const float* floats() const { return at_; }

 private:
  Buffer copy_;
  const float* at_;
};

// An error of the record, HR0545.
Error cannot_take(std::string_view owner, const std::string& reason);
// HR0546 if this many bytes exceed a record's limit.
Result<void> check_outcome(std::string_view owner, const Shape& shape, const Renderer& renderer);

}  // namespace headrace
