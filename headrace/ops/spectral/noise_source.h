// SPDX-License-Identifier: Apache-2.0
// A dataset of noises that are added to another dataset's audio. Provides a segment of one noise at
// the sample rate of the audio.
//
// Nothing is read ahead: the thread that adds a noise reads its file, then decodes only the
// required segment. Any thread may take a segment.
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

// Samples of a noise; channel c starts at samples + c * stride. Adding starts at `first`, and
// continues at 0 when the noise ends.
struct Noise {
  const float* samples = nullptr;
  int64_t channels = 0, stride = 0, frames = 0, first = 0;
  Buffer memory = {};  // owner of the samples, if they were copied
};

// The first frame of the noise that is added to audio of this many frames, from a random `place` in
// 0 to 1: any frame from which a long noise suffices; any frame of a short noise, which is
// repeated.
int64_t first_of_noise(double place, int64_t noise_frames, int64_t audio_frames);

// Why the noise cannot be added; repeat=True is the fix.
std::string noise_too_short(int64_t audio_frames, int64_t noise_frames);

class NoiseSource {
 public:
  // HR0510 if it has no records, or does not have exactly one audio field.
  NoiseSource(std::string_view owner, SourcePtr source);

  int64_t size() const { return source_->size(); }

  struct Wanted {
    int sample_rate = 0;  // of the audio; 0: unknown, and then the noise's must be, too
    int64_t frames = 0;   // of the audio
    double place = 0;
    bool repeat = false;  // otherwise, noise shorter than the audio is rejected
    MediaOptions decoding = {};
  };
  // Errors state the file: read errors are unchanged, HR0545 if the noise does not fit.
  Result<Noise> take(int64_t index, const Wanted& wanted, Renderer& renderer) const;
  // Adds the drawn noise to a record's error.
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
