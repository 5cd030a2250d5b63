// SPDX-License-Identifier: Apache-2.0
// A packet of video or audio as its container describes it; times are in ticks of its track.
#pragma once

#include <cstdint>

namespace headrace {

struct MediaPacket {
  int64_t offset = 0;  // in the file; [offset, offset + size) is inside of it
  uint32_t size = 0;
  bool key = false;  // decoding can begin here according to the container; plan_frames() checks it
  int64_t pts = 0;   // in ticks of the file's clock, whose 0 is shared by its audio and frames
};

}  // namespace headrace
