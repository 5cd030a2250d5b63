// SPDX-License-Identifier: Apache-2.0
// Changes the hue, saturation and value of RGB rows, in the 8-bit HSV of OpenCV (hue from 0 to
// 179).
//
// Any thread may call it. It may read and write up to 63 bytes past `count` samples of each row.
// Input and output must not overlap.
#pragma once

#include <cstdint>

namespace headrace {

// hue + hue_add modulo 180; saturation and value times a gain plus an offset, truncated and clamped
// to 0 to 255. Gray pixels stay gray.
struct HsvChange {
  int hue_add = 0;  // 0 to 179
  float saturation_gain = 1, saturation_add = 0;
  float value_gain = 1, value_add = 0;
};

void change_hsv_rows(const uint8_t* const rgb[3], int count, const HsvChange& change,
                     uint8_t* const out[3]);

}  // namespace headrace
