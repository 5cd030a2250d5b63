// SPDX-License-Identifier: Apache-2.0
// Converts a warp to a pending pass for a device, and to a job of the device's kernel
// (kernels/batch/warp_pictures.h).
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/image/pending_picture.h"
#include "headrace/image/warp.h"
#include "headrace/kernels/batch/warp_pictures.h"

namespace headrace {

// Whether WarpPictures supports it: affine and perspective warps of up to four channels of 8 bits,
// but not bicubic ones, nor warps whose positions Pillow computes in double because they exceed its
// fixed-point range.
bool runs_on_device(const Warp& warp, bool is_mask, int channels);

// The warp of an image, not of a mask, as a pass. REQUIRES: a fill of at most four values.
PendingPass warp_pass(const Warp& warp);
// The warp of such a pass; its fill is in the pass's memory.
Warp warp_of(const PendingPass& pass);

// The job that computes this part of the result; the caller sets the addresses of the planes.
// Appends the contents of tables to `tables`. REQUIRES: runs_on_device(), and a fill, if any, has
// one value or one per channel.
WarpJob device_warp_of(const Warp& warp, bool is_mask, int channels, Size from, const Window& part,
                       std::vector<int32_t>& tables);

}  // namespace headrace
