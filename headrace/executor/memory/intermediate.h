// SPDX-License-Identifier: Apache-2.0
// Memory for pictures and audio that are rendered before the end of the pipeline: for a Python
// step, a step that works on pixels, or a step that cannot be added to the recipe. In a pipeline
// with such steps, a record reserves its memory as soon as its header is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/pipeline/plan.h"

namespace headrace {

struct IntermediateMemory {
  bool any = false;
  size_t largest = 0;            // bytes, if the size is known
  size_t open_factor = 0;        // bytes per sample, if the size depends on the record
  size_t scratch_per_pixel = 0;  // of the step that needs most additional memory
  size_t known_pixels = 0;       // of the largest picture whose size is known
  std::vector<int> views = {};   // by field: how many pictures Forks make from it
  // For audio that must be decoded before it is written: bytes of the longest clip whose length is
  // known, and whether there are others.
  size_t largest_sound = 0;
  bool open_sounds = false;
  // By field: pictures kept of a video; and how many such pictures have intermediate pixels.
  std::vector<size_t> kept_of_video = {};
  bool clips_cross = false;  // clips are passed to Python
  size_t kept_with_pixels = 0;
  // By field: how often audio is extracted from the video, and its duration in seconds; -1: the
  // duration of the whole video.
  struct SoundOfVideo {
    int64_t times = 0;
    double seconds = 0;
  };
  std::vector<SoundOfVideo> sound_of_video = {};
  size_t bytes_of(const Recipe& picture) const;
  size_t bytes_of_pictures(Size size, int channels) const;
  size_t bytes_of(const Video& video, size_t field) const;
  size_t bytes_of(const AudioClip& audio) const;  // input and result of a step
  // Memory of a step in addition to the picture and its result.
  size_t scratch_bytes(const Recipe& picture) const;
};

IntermediateMemory intermediate_memory(const Plan& plan);

}  // namespace headrace
