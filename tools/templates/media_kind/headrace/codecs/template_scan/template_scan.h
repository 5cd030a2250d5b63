// SPDX-License-Identifier: Apache-2.0
// Scans: points of a plane as a file, HRSCAN, a byte that counts them, and of each x and y, a byte.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/base/error.h"

namespace headrace {

bool begins_like_template_scan(std::span<const uint8_t> first_bytes);
// The number of points according to the header. Allocates nothing.
Result<int64_t> template_scan_points(std::span<const uint8_t> file);
// x and y of each. REQUIRES: room for the number of points returned by template_scan_points().
Result<void> decode_template_scan(std::span<const uint8_t> file, float* points);

}  // namespace headrace
