// SPDX-License-Identifier: Apache-2.0
// How many samples packets of Vorbis hold, which only its own library can tell.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/base/error.h"

namespace headrace {

// The three packets that a decoder needs first, one behind the other with their sizes in front, as
// other containers keep them. HR0350 where they are none.
Result<std::vector<std::span<const uint8_t>>> vorbis_headers(std::span<const uint8_t> parameters);

// Of each packet, how many samples are there once it is decoded, from the first one on. HR0350
// where one of them is not a packet of sound.
Result<std::vector<int64_t>> vorbis_positions(std::span<const std::span<const uint8_t>> headers,
                                              std::span<const std::span<const uint8_t>> packets);

}  // namespace headrace
