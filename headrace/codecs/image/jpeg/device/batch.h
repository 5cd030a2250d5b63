// SPDX-License-Identifier: Apache-2.0
// Images that a device decodes together: drafts (draft.h) assembled into the input of the kernels
// in kernels/device_jpeg/.
//
// Unsupported files, which add() rejects, and damaged files, which a flag marks, are decoded on the
// CPU, to the same pixels. For one thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/codecs/image/jpeg/device/draft.h"
#include "headrace/kernels/device_jpeg/decode_batch.h"

namespace headrace {

class JpegDeviceBatch {
 public:
  void clear();

  // Adds the next image's window, like make_device_draft(); write() then writes its bytes, too.
  // Returns false, and adds nothing, if the CPU has to decode the image.
  bool add(std::span<const uint8_t> bytes, std::span<const uint8_t> row_index, const Window& window,
           ColorMode color);
  // Adds an image whose bytes are already at `first_word` of the streams in
  // DeviceJpegMemory::streams. REQUIRES: no image was added by its bytes.
  void add(const JpegDeviceDraft& draft, uint32_t first_word);

  const DeviceJpegSizes& sizes() const { return sizes_; }
  const DeviceImage& image(size_t i) const { return images_[i]; }
  std::span<const RowJob> row_jobs() const { return row_jobs_; }
  std::span<const WalkGroup> walk_groups() const { return walk_groups_; }
  // Writes the upload_bytes(sizes()) bytes that place() divides into sections.
  void write(uint8_t* upload) const;

  // Offset of row `y` of channel `c` of image i in the memory `out`.
  int64_t row_offset(size_t i, int c, int y) const {
    const DeviceImage& image = images_[i];
    return image.out + int64_t{c} * image.out_plane + int64_t{y} * image.out_stride + image.margin;
  }

 private:
  DeviceJpegSizes sizes_;
  JpegDeviceDraft draft_;  // kept for its capacity
  std::vector<DeviceImage> images_;
  std::vector<DeviceCode> codes_;
  std::vector<std::array<int16_t, 64>> quantizations_;
  std::vector<RowJob> row_jobs_;
  std::vector<WalkGroup> walk_groups_;
  std::vector<PieceJob> block_jobs_;
  std::array<std::vector<PieceJob>, kColorKinds> pixel_jobs_;
  std::vector<uint32_t> streams_;
};

}  // namespace headrace
