// SPDX-License-Identifier: Apache-2.0
// The passes of a stage that compute pixels from neighboring pixels, or warp images. Each goes from
// one position among a batch's images to another; all passes of one kind are one launch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/device/device.h"
#include "headrace/image/pending_picture.h"
#include "headrace/kernels/batch/blur_pictures.h"
#include "headrace/kernels/batch/pass_plan.h"
#include "headrace/kernels/batch/sharpen_pictures.h"
#include "headrace/kernels/batch/warp_pictures.h"

namespace headrace {

// One image-wide pass of one image.
struct MovedImage {
  PendingPass pass;
  int64_t from = 0, to = 0;  // offsets of the first sample; dense planes, (C, H, W)
};

class MovedImages {
 public:
  // Whether kernels support the pass for images of this size.
  static bool takes(const PendingPass& pass, Size size, int channels);
  // Upper bound of its host memory.
  static size_t instruction_bytes(const PendingPass& pass);

  // Plans a stage; REQUIRES: takes() is true for each pass.
  void plan(std::span<const MovedImage> images, Size size, int channels);

  size_t parameter_bytes() const { return parameters_end_; }
  void write(uint8_t* to) const;
  // `parameters` is aligned to 256 bytes.
  void queue(Stream& stream, const uint8_t* parameters, uint8_t* images) const;

 private:
  void add(const MovedImage& image, const PassPlanes& planes);

  PassPlan<SharpenJob> sharpened_;
  PassPlan<BlurJob> blurred_;
  PassPlan<WarpJob> warped_;
  std::vector<int32_t> tables_;  // of warps
  // Offsets in the parameters; sharpening is at offset 0.
  size_t blurred_at_ = 0, warped_at_ = 0, tables_at_ = 0, parameters_end_ = 0;
};

}  // namespace headrace
