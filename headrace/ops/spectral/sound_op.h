// SPDX-License-Identifier: Apache-2.0
// What operators on waveforms and spectrograms share: dense float32 in, dense float32 out, of a
// shape that is arithmetic on the one that goes in. amplitude_to_db.cc is the one to copy.
//
// A waveform is (channels, frames), a spectrogram (channels, bins, frames). What the plan knows of
// a shape it knows of the outcome too, so records of one length make dense batches.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/ops/op.h"

namespace headrace {

class SoundOp : public Op {
 public:
  enum class Takes : uint8_t { kWaveform, kSpectrogram };

  bool takes(FieldKind kind) const override;
  void plan(FieldState& field) const final;
  Result<void> apply(OpContext& context) const final;

 protected:
  SoundOp(std::string_view name, Takes what) : name_(name), takes_(what) {}
  std::string_view name() const { return name_; }

  // One value at the step; channel c of a waveform begins at in + c * frames.
  struct Values {
    const float* in;
    const Shape& shape;
    Draws& draws;  // the same for each field of the record
  };

  // The shape that comes out; -1 goes in and comes out where an extent is open.
  virtual Shape shape_after(const Shape& shape) const { return shape; }
  // Why a value of this shape cannot go in, "" where it can. -1: not known yet.
  virtual std::string misfit(const Shape& shape) const {
    (void)shape;
    return {};
  }
  // Whether the outcome has the place of what goes in: `in` may be `out`.
  virtual bool in_place() const { return false; }
  // Of a drawn shape: what this record's will be.
  virtual Shape drawn_shape(const Shape& shape, Draws draws) const {
    (void)draws;
    return shape_after(shape);
  }
  // REQUIRES: room for drawn_shape(...) at `out`; no extent of `shape` is 0.
  virtual void compute(const Values& values, float* out) const = 0;

 private:
  Result<void> apply_to(FieldValue& value, OpContext& context) const;

  const std::string_view name_;
  const Takes takes_;
};

// "hop_length must be positive (got -3)" and the like: HR0510.
[[noreturn]] void raise_sound_misfit(std::string_view owner, const std::string& what,
                                     const std::string& hint = {});

}  // namespace headrace
