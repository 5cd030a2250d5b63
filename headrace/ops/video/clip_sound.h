// SPDX-License-Identifier: Apache-2.0
// The audio of a clip's time range, from the file of its frames.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/ops/op.h"

namespace headrace {

// The audio from a second of the file's own clock on.
struct SoundWindow {
  double begin = 0, seconds = 0;
};

class ClipSound {
 public:
  // The parameters of clip_sound_params(). Says in the form what will be made; a clip lasts so many
  // seconds, or, -1, as many as its frames do.
  ClipSound(std::string_view owner, const Arguments& arguments, double seconds, ClipForm& form);

  // Field sounds[i] becomes the sound of windows[i]: its first sample is the file's that begins
  // nearest to the window's begin, so at most half a sample from it; where the sound ends with the
  // clip, one. HR0549 where there is no such sound, or less of it, and nobody has said that silence
  // takes its place.
  Result<void> take(const FieldValue& video, std::span<const SoundWindow> windows,
                    std::span<const int> sounds, OpContext& context) const;

 private:
  Result<void> take_one(const Sound& all, const SoundWindow& window, int field,
                        OpContext& context) const;
  int64_t frames_of(const SoundWindow& window) const;

  const std::string_view owner_;
  int rate_ = 0;
  int64_t channels_ = -1, frames_ = -1;  // as ClipForm has them
  bool silence_ = false;
  std::unique_ptr<const Op> resample_;
};

std::vector<Param> clip_sound_params();

}  // namespace headrace
