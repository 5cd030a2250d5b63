// SPDX-License-Identifier: Apache-2.0
// Rendered pixels: a dense, planar (C, H, W) picture in memory, a movable value type. Also the
// types for a picture's size and for the library whose arithmetic it follows.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "headrace/base/buffer.h"
#include "headrace/base/dtype.h"
#include "headrace/codecs/codec.h"

namespace headrace {

// torchvision's results for tensors and for Pillow images differ. An operator that supports both
// uses the arithmetic that the user chooses.
enum class Arithmetic : uint8_t { kTorch, kPillow };

struct Size {
  int height = 0, width = 0;
  bool operator==(const Size&) const = default;
};

// One number per channel; those of channels that a picture does not have are 0.
using ChannelValues = std::array<double, kMaxChannels>;

struct Picture {
  int channels = 0, height = 0, width = 0;  // kMaxChannels at most
  DType dtype = DType::kUInt8;              // uint8, uint16, float32, float16 or bfloat16
  Buffer pixels;

  Picture() = default;
  Picture(int channels, int height, int width, DType dtype)
      : channels(channels),
        height(height),
        width(width),
        dtype(dtype),
        pixels(size_t(channels) * height * width * size_of(dtype)) {}
  size_t plane_bytes() const { return size_t(height) * width * size_of(dtype); }
  uint8_t* plane(int channel) { return pixels.data() + channel * plane_bytes(); }
  const uint8_t* plane(int channel) const { return pixels.data() + channel * plane_bytes(); }
};

}  // namespace headrace
