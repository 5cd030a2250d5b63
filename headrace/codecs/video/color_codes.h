// SPDX-License-Identifier: Apache-2.0
// Conversion of the code points of ITU-T H.273 for colors, which containers and codecs use.
#pragma once

#include <cstdint>

#include "headrace/codecs/video/video_track.h"

namespace headrace {

inline ColorMatrix color_matrix_from(uint64_t code) {
  switch (code) {
    case 0:
      return ColorMatrix::kIdentity;
    case 1:
      return ColorMatrix::kBT709;
    case 2:
      return ColorMatrix::kUnspecified;
    case 4:
      return ColorMatrix::kFCC;
    case 5:
    case 6:
      return ColorMatrix::kBT601;
    case 7:
      return ColorMatrix::kSMPTE240M;
    case 9:
      return ColorMatrix::kBT2020;
    default:
      return ColorMatrix::kOther;
  }
}

inline ColorTransfer color_transfer_from(uint64_t code) {
  if (code == 16) return ColorTransfer::kPQ;
  if (code == 18) return ColorTransfer::kHLG;
  return code == 2 ? ColorTransfer::kUnspecified : ColorTransfer::kStandard;
}

}  // namespace headrace
