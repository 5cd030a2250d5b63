// SPDX-License-Identifier: Apache-2.0
// The number of pixels that HEVC data decodes to, from its sequence parameter sets (ITU-T H.265,
// 7.3.2.2). Bounds-checked, allocates nothing; any thread may call it.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

// Pixels of the largest picture; 0 if there is no parameter set. Parameter sets of additional
// layers, which libde265 drops, are ignored.
//
// `data`: NAL units, each preceded by its length in four bytes, as in libheif's items.
uint64_t pixels_of_hevc_item(std::span<const uint8_t> data);
// `record`: the content of box hvcC (ISO/IEC 14496-15, 8.3.3.1.2).
uint64_t pixels_of_hevc_configuration(std::span<const uint8_t> record);

}  // namespace headrace
