// SPDX-License-Identifier: Apache-2.0
// Frames of a video -> pictures of a record: decoded together, kept in the decoder's format.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/ops/op.h"

namespace headrace {

// Field pictures[i] becomes frame frames[i], upright. The same number may appear several times, in
// any order. HR0376 if a frame's size differs from the video's, HR0377 if it is high dynamic range
// and `hdr` is false.
Result<void> take_frames(const FieldValue& video, std::span<const uint32_t> frames, bool hdr,
                         std::span<const int> pictures, Record& record, Renderer& renderer);

}  // namespace headrace
