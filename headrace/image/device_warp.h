// SPDX-License-Identifier: Apache-2.0
// A warp as a pass that is left to a device, and as the job of its kernel
// (kernels/batch/warp_pictures.h).
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/image/pending_picture.h"
#include "headrace/image/warp.h"
#include "headrace/kernels/batch/warp_pictures.h"

namespace headrace {

// Whether WarpPictures supports it: affine and perspective warps of up to four channels of 8 bits,
// but not bicubic ones, nor Pillow's positions beyond fixed point, which are sums of doubles.
bool runs_on_device(const Warp& warp, bool is_mask, int channels);

// For an image, not a mask. REQUIRES: a fill of at most four values.
PendingPass warp_pass(const Warp& warp);
// The same warp, with a fill that is the pass's own memory.
Warp warp_of(const PendingPass& pass);

// The job that makes this part of the result; the caller sets the planes' addresses. Table contents
// are appended to `tables`. REQUIRES: it runs there, and a fill has one value or one per channel.
WarpJob device_warp_of(const Warp& warp, bool is_mask, int channels, Size from, const Window& part,
                       std::vector<int32_t>& tables);

}  // namespace headrace
