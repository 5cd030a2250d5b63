// SPDX-License-Identifier: Apache-2.0
// The same steps as FusedPass for pictures of floats, plane by plane; for what a Python function or
// a decoder of floats hands over. Not a hot path.
#pragma once

#include "headrace/image/fused_pass.h"
#include "headrace/image/picture.h"

namespace headrace {

// Renders a window of a float picture; `transpose` swaps its axes first. Resizing equals Pillow's
// on mode "F", by channel; float16 and bfloat16 pictures are resized in float32 and rounded back.
// REQUIRES: the range is not empty.
void render_floats(const Picture& picture, const Window& window, bool transpose,
                   const PassJob& job);
// The memory that it takes.
size_t float_working_bytes(const PassJob& job);

}  // namespace headrace
