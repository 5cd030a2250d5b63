// SPDX-License-Identifier: Apache-2.0
// The same steps as FusedPass for pictures whose samples do not fit into a byte, plane by plane: 16
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
  // Renders a window of such a picture; `transpose` swaps its axes first. Resizing equals Pillow's
  // by channel, on mode "F" or, of uint16, "I;16"; float16 and bfloat16 pictures are resized in
  // float32 and rounded back. REQUIRES: the range is not empty.
  void run(const Picture& picture, const Window& window, bool transpose, const PassJob& job);

  size_t held_bytes() const;
  void free();
  // Upper bound of its memory for this one.
  static size_t working_bytes(const PassJob& job);

 private:
  // A channel of the picture as it is after the resize.
  const WidePlane& resized(const Picture& picture, const Window& window, bool transpose,
                           const PassJob& job, int channel);

  WidePlane oriented_, between_;
  std::vector<WidePlane> planes_;             // by channel; one where none waits for others
  std::vector<float> rows_, mapped_, steps_;  // of the range
};

}  // namespace headrace
