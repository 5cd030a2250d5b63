// SPDX-License-Identifier: Apache-2.0
// The passes of a stage that make other pixels of an image than its own: neighbours and warps. Each
// goes from one place among a batch's images to another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/device/device.h"
#include "headrace/image/pending_picture.h"

namespace headrace {

// One image's pass.
struct MovedImage {
  PendingPass pass;
  int64_t from = 0, to = 0;  // of its first sample; dense planes, (C, H, W)
};

class MovedImages {
 public:
  // Whether kernels have the pass, for images of this size.
  static bool takes(const PendingPass& pass, Size size, int channels);

  // What a stage has; REQUIRES: takes() each.
  void plan(std::span<const MovedImage> images, Size size, int channels);

  size_t parameter_bytes() const { return parameters_.size(); }
  size_t scratch_bytes() const { return scratch_; }
  void write(uint8_t* to) const;
  // `parameters` and `scratch` are aligned to 256 bytes.
  void queue(Stream& stream, const uint8_t* parameters, uint8_t* scratch, uint8_t* images) const;

 private:
  std::vector<uint8_t> parameters_;
  size_t scratch_ = 0;
};

}  // namespace headrace
