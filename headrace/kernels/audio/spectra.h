// SPDX-License-Identifier: Apache-2.0
// The power spectra of a signal's frames, block by block while they are in the cache: the first
// step of all audio features.
//
// SpectralFrames is immutable; any thread may use it. SpectralScratch is for one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/kernels/audio/frame_kernels.h"
#include "headrace/kernels/audio/padded_signal.h"

namespace headrace {

struct SpectralFrames {
  RealFft fft;
  std::vector<float> window;  // covers `window.size()` samples of a frame, starting at `window_at`;
  int window_at = 0;          // the frame's other samples are 0
  int64_t hop = 1;
  int64_t before = 0;  // samples between the start of frame 0 and the first sample
  SignalEdge edge = SignalEdge::kZeros;
  int64_t zeros = 0;  // on either side of the signal, included in it
  std::optional<FrameConditioning> conditioning = {};

  // Number of whole frames in a signal extended by `before` at both ends; 0 if there are none.
  int64_t frames_of(int64_t samples) const {
    const int64_t beyond = samples + 2 * zeros + 2 * before - fft.length;
    return beyond < 0 ? 0 : 1 + beyond / hop;
  }
};

struct SpectralBlock {
  int64_t first;  // frame
  int frames, lanes;
  const float* powers;  // one row of `lanes` values per bin
  // Sums of squares of the conditioned frames, before and after preemphasis and window.
  const float *raw_energies, *energies;
};

class SpectralScratch {
 public:
  // Calls each(const SpectralBlock&) for all of the signal's frames, in order. REQUIRES: samples >
  // 0.
  template <class Each>
  void each_block(const SpectralFrames& how, const float* samples, int64_t length, int64_t frames,
                  Each&& each) {
    const FrameKernels& kernels = frame_kernels();
    const auto row = static_cast<size_t>(kernels.lanes) * sizeof(float);
    block_.resize(static_cast<size_t>(how.fft.room()) * row);
    other_.resize(static_cast<size_t>(how.fft.room()) * row);
    energies_.resize(2 * row);
    auto *const block = floats(block_), *const energies = floats(energies_);
    const auto windowed = static_cast<int>(how.window.size());
    const auto zero = [&](int begin, int end) {
      std::memset(block + int64_t{begin} * kernels.lanes, 0, size_t(end - begin) * row);
    };
    PaddedSignal signal(samples, length, how.edge, how.zeros);
    for (int64_t first = 0; first < frames; first += kernels.lanes) {
      const auto count = static_cast<int>(std::min<int64_t>(kernels.lanes, frames - first));
      const int64_t span = (kernels.lanes - 1) * how.hop + windowed + 3;
      const int64_t wanted = (count - 1) * how.hop + windowed;
      const float* const from =
          signal.stretch(first * how.hop - how.before + how.window_at, span, wanted);
      float* const to = block + int64_t{how.window_at} * kernels.lanes;
      zero(0, how.window_at);
      zero(how.window_at + windowed, how.fft.length);
      if (how.conditioning) {
        kernels.gather(from, how.hop, windowed, nullptr, to, kernels.lanes);
        kernels.condition(*how.conditioning, how.window.data(), windowed, energies,
                          energies + kernels.lanes, to);
      } else {
        kernels.gather(from, how.hop, windowed, how.window.data(), to, kernels.lanes);
      }
      const float* const powers = kernels.powers(how.fft, block, floats(other_));
      each(SpectralBlock{first, count, kernels.lanes, powers, energies, energies + kernels.lanes});
    }
  }

 private:
  static float* floats(Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }
  Buffer block_, other_, energies_;
};

}  // namespace headrace
