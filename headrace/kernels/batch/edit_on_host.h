// SPDX-License-Identifier: Apache-2.0
// PictureBatch for 8-bit pictures on one thread of a CPU: each picture is cropped, mirrored and
// padded as bytes in the L1 cache, and from there mapped and stored by the vector code of
// kernels/store.h, so that a picture's bytes are read from memory once; they are prefetched some
// pictures ahead. The bits equal those of PictureBatch, because both use the StoreTable.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "headrace/kernels/batch/picture_batch.h"
#include "headrace/kernels/store.h"

namespace headrace {

struct HostEdits {
  const uint8_t* pictures = nullptr;          // dense (C, H, W)
  int channels = 1, height = 0, width = 0;    // 1 to 4 channels
  int to_height = 0, to_width = 0;            // dimensions of a batch's picture
  bool channels_last = false;                 // of the batch; else channels first
  std::array<const StoreTable*, 4> tables{};  // by channel, all of one dtype; the only set
  std::array<uint8_t, 4> padding{};           // before the table is applied
};

// For i < count, picture indices[i], edited by edits[i], becomes picture i of `batch`; they must
// not overlap. `strip` is per-thread scratch memory, reused between calls.
void edit_on_host(const HostEdits& how, const int64_t* indices, const PictureEdit* edits,
                  int64_t count, void* batch, std::vector<uint8_t>& strip);

}  // namespace headrace
