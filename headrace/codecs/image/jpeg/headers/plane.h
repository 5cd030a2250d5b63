// SPDX-License-Identifier: Apache-2.0
// The part of a component that a window needs: how its samples are upsampled to the image's size,
// and which samples that requires. Plain data; any thread may call it.
#pragma once

#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/headers/frame.h"
#include "headrace/kernels/jpeg/upsample.h"

namespace headrace {

struct JpegPlane {
  Upsampling upsampling = Upsampling::kNone;
  int h_ratio = 1, v_ratio = 1;  // ratio of the image's size to the component's
  int rows = 0;                  // samples per MCU row
  int width = 0, height = 0;     // size in samples
  int left = 0, right = 0;       // first and last column that are needed
  int top = 0, bottom = 0;       // first and last row that are needed

  // The first column of blocks that is decoded: blocks are transformed four at a time.
  int first_column() const { return left / 8 / 4 * 4; }
  bool reads_horizontal_neighbors() const {
    return upsampling == Upsampling::kH2V1 || upsampling == Upsampling::kH2V2;
  }
  bool reads_vertical_neighbors() const {
    return upsampling == Upsampling::kH1V2 || upsampling == Upsampling::kH2V2;
  }
};

// REQUIRES: lay_out(frame) was true, the window is inside the image.
JpegPlane jpeg_plane(const JpegFrame& frame, const JpegComponent& component, const Window& window);

}  // namespace headrace
