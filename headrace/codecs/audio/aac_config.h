// SPDX-License-Identifier: Apache-2.0
// What an AAC decoder is opened with: the AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1).
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

struct AacConfig {
  bool is_good = false;  // it is there as a whole
  int object_type = 0;   // 2: AAC-LC
  int sample_rate = 0;
  int channels = 0;           // 0: a table of its own says it
  bool short_frames = false;  // of 960 samples, not 1024
  bool has_sbr = false;       // says that high bands are made from the low ones (HE-AAC)
};

AacConfig read_aac_config(std::span<const uint8_t> bytes);

}  // namespace headrace
