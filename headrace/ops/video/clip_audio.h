// SPDX-License-Identifier: Apache-2.0
// The audio of a clip's time range, from the same file as its frames.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/ops/op.h"

namespace headrace {

// The audio starting at a second of the file's own clock.
struct AudioWindow {
  double begin = 0, seconds = 0;
};

class ClipAudio {
 public:
  // From the parameters of clip_audio_params(). Fills in the form; a clip lasts this many seconds,
  // or, if -1, as long as its frames.
  ClipAudio(std::string_view owner, const Arguments& arguments, double seconds, ClipForm& form);

  // Field fields[i] becomes the audio of windows[i]. Its first sample is the one nearest to the
  // window's start, so off by at most half a sample; if the audio ends with the clip, by up to one.
  // HR0549 if the audio is missing or shorter and silence was not requested.
  Result<void> take(const FieldValue& video, std::span<const AudioWindow> windows,
                    std::span<const int> fields, OpContext& context) const;

 private:
  Result<void> take_one(const AudioClip& all, const AudioWindow& window, int field,
                        OpContext& context) const;
  int64_t frames_of(const AudioWindow& window) const;

  const std::string_view owner_;
  int rate_ = 0;
  int64_t channels_ = -1, frames_ = -1;  // same as in ClipForm
  bool silence_ = false;
  std::unique_ptr<const Op> resample_;
};

std::vector<Param> clip_audio_params();

}  // namespace headrace
