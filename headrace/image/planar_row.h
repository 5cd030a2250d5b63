// SPDX-License-Identifier: Apache-2.0
// Copies one row of a decoder's block to planes, whatever its layout.
#pragma once

#include "headrace/codecs/codec.h"

namespace headrace {

// `count` samples of row `row` of the block: channel c goes to out[c]. May write up to 63 bytes
// past each plane's row.
void copy_planar_row(const RowBlock& block, int row, int channels, int count, uint8_t* const out[]);

}  // namespace headrace
