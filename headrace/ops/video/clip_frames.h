// SPDX-License-Identifier: Apache-2.0
// Frames of a video -> pictures of a record: decoded together, kept in order of arrival.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/ops/op.h"

namespace headrace {

// Field pictures[i] becomes frame frames[i], upright. The same number may come more than once, in
// any order. HR0376 where a frame has another size than the video, HR0377 where it is of high
// dynamic range and not `hdr`.
Result<void> take_frames(const FieldValue& video, std::span<const uint32_t> frames, bool hdr,
                         std::span<const int> pictures, Record& record, Renderer& renderer);

}  // namespace headrace
