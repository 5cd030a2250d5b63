// SPDX-License-Identifier: Apache-2.0
// A dataset of noises that are added to another's audio: a stretch of one of them, at that audio's
// sample rate.
//
// Nothing of it is read ahead: whoever adds a noise reads its file, then decodes what the stretch
// is made from and no more. Any thread may take.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/image/render.h"
#include "headrace/ops/spectral/resamplers.h"
#include "headrace/sources/source.h"

namespace headrace {

// Samples of a noise, channel c from samples + c * stride on. They begin to be added at `first`,
// and at 0 again where the noise ends.
struct Noise {
  const float* samples = nullptr;
  int64_t channels = 0, stride = 0, frames = 0, first = 0;
  Buffer memory = {};  // where they are its own
};

// Where the noise of a sound of so many frames begins, of a `place` that is drawn from 0 to 1: any
// place at which a long one fits; a short one begins anew, from anywhere.
int64_t first_of_noise(double place, int64_t noise_frames, int64_t sound_frames);

// Why it cannot be added; repeat=True is the way out.
std::string noise_too_short(int64_t sound_frames, int64_t noise_frames);

class NoiseSource {
 public:
  // HR0510 where it has no record, or not one field of sounds.
  NoiseSource(std::string_view owner, SourcePtr source);

  int64_t size() const { return source_->size(); }

  struct Wanted {
    int sample_rate = 0;  // of the sound; 0: unknown, and the noise's must be, too
    int64_t frames = 0;   // of the sound
    double place = 0;
    bool repeat = false;  // else one that is shorter than the sound is refused
    MediaOptions decoding = {};
  };
  // Errors say which file it is: of the record as read, or HR0545 where it does not fit.
  Result<Noise> take(int64_t index, const Wanted& wanted, Renderer& renderer) const;
  // Says in an error of a record which noise it had drawn.
  void blame(int64_t index, Error& error) const;

 private:
  Result<Noise> take_of(const RecordData& data, const Wanted& wanted, Renderer& renderer) const;

  const std::string_view owner_;
  const SourcePtr source_;
  const size_t field_;
  std::vector<bool> wanted_;
  const Resamplers resamplers_;
};

}  // namespace headrace
