// SPDX-License-Identifier: Apache-2.0
// Does the same as FusedPass, plane by plane, for pictures whose samples are wider than bytes: 16
// bits and floats, from a decoder, an array, or a Python function. Keeps its memory between
// pictures. Not thread-safe.
#pragma once

#include <vector>

#include "headrace/image/fused_pass.h"
#include "headrace/image/picture.h"
#include "headrace/kernels/resample/resample_wide.h"

namespace headrace {

class WidePass {
 public:
  // Renders a window of such a picture; `transpose` swaps its axes first. Resizing each channel
  // equals Pillow in mode "F", or "I;16" for uint16; float16 and bfloat16 pictures are resized in
  // float32 and rounded back. REQUIRES: the range is not empty.
  void run(const Picture& picture, const Window& window, bool transpose, const PassJob& job);

  size_t held_bytes() const;
  void free();
  // Upper bound on its memory for this job.
  static size_t working_bytes(const PassJob& job);

 private:
  // A channel of the picture after the resize.
  const WidePlane& resized(const Picture& picture, const Window& window, bool transpose,
                           const PassJob& job, int channel);

  WidePlane oriented_, between_;
  std::vector<WidePlane> planes_;  // by channel; only one if channels are processed separately
  std::vector<float> rows_, mapped_, steps_;  // for the range
};

}  // namespace headrace
