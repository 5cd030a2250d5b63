// SPDX-License-Identifier: Apache-2.0
// Sample counts of Vorbis packets, which only libvorbis can compute.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/base/error.h"

namespace headrace {

// The three packets that a decoder needs first, concatenated and preceded by their sizes, as other
// containers store them. HR0350 if invalid.
Result<std::vector<std::span<const uint8_t>>> vorbis_headers(std::span<const uint8_t> parameters);

// For each packet, the number of samples after it is decoded, counted from the first one. HR0350 if
// one of them is not an audio packet.
Result<std::vector<int64_t>> vorbis_positions(std::span<const std::span<const uint8_t>> headers,
                                              std::span<const std::span<const uint8_t>> packets);

}  // namespace headrace
