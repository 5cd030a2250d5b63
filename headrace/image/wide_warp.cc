// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/wide_warp.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "headrace/image/pixel_map.h"
#include "headrace/image/warp_pass.h"
#include "headrace/image/warp_places.h"

namespace headrace {
namespace {

// A position between four pixels, each with its weight; pixels outside of the picture have none.
struct Blend {
  std::array<ptrdiff_t, 4> offset{};
  std::array<float, 4> weight{};
  std::array<bool, 4> inside{};

  Blend(float x, float y, Size of) {
    const float left = std::floor(x), top = std::floor(y);
    const float west = x - left, east = 1.0f - west, north = y - top, south = 1.0f - north;
    weight = {south * east, south * west, north * east, north * west};
    // Far outside or NaN: no pixel of the picture, and no value that overflows int.
    if (!(std::abs(left) < 0x1p30f && std::abs(top) < 0x1p30f)) return;
    const int column = static_cast<int>(left), row = static_cast<int>(top);
    for (int k = 0; k < 4; ++k) {
      const int u = column + k % 2, v = row + k / 2;
      inside[size_t(k)] = u >= 0 && u < of.width && v >= 0 && v < of.height;
      offset[size_t(k)] = ptrdiff_t{v} * of.width + u;
    }
  }

  // grid_sample's sum, with the same fused operations as torch.
  template <class Value>
  float sum(const Value& value) const {
    float out = (inside[0] ? value(offset[0]) : 0.0f) * weight[0];
    for (size_t k = 1; k < 4; ++k) {
      out = std::fma(inside[k] ? value(offset[k]) : 0.0f, weight[k], out);
    }
    return out;
  }
  float share() const {
    return sum([](ptrdiff_t) { return 1.0f; });
  }
};

template <class Sample>
void nearest(const WarpedPicture& picture, const Window& part, Picture& out) {
  const Picture& from = *picture.from;
  NearestOffsets rows(picture.warp, {from.height, from.width}, part);
  std::vector<int32_t> offsets(size_t(part.width) + kBeyondRow);
  for (int y = 0; y < part.height; ++y) {
    rows.next_row(offsets.data());
    for (int c = 0; c < from.channels; ++c) {
      const auto* const samples = reinterpret_cast<const Sample*>(from.plane(c));
      const auto fill = static_cast<Sample>(fill_of(picture.warp, picture.is_mask, size_t(c)));
      auto* const to = reinterpret_cast<Sample*>(out.plane(c)) + size_t(y) * size_t(part.width);
      for (int x = 0; x < part.width; ++x) {
        const int32_t offset = offsets[size_t(x)];
        to[x] = offset == kOutside ? fill : samples[offset];
      }
    }
  }
}

template <class Sample>
void bilinear(const WarpedPicture& picture, const Window& part, Picture& out) {
  const Picture& from = *picture.from;
  const Size size{from.height, from.width};
  TorchPlaces rows(picture.warp, size, part);
  std::vector<float> x(size_t(part.width) + kBeyondRow), y(x.size());
  const bool fills = !picture.warp.style.fill.empty();
  for (int row = 0; row < part.height; ++row) {
    rows.row(row, x.data(), y.data());
    for (int column = 0; column < part.width; ++column) {
      const Blend blend(x[size_t(column)], y[size_t(column)], size);
      const float share = fills ? blend.share() : 1.0f;
      for (int c = 0; c < from.channels; ++c) {
        const auto* const samples = reinterpret_cast<const Sample*>(from.plane(c));
        float value = blend.sum([&](ptrdiff_t at) { return static_cast<float>(samples[at]); });
        if (fills) {
          const auto fill = static_cast<float>(fill_of(picture.warp, picture.is_mask, size_t(c)));
          value = (value - fill) * share + fill;
        }
        if constexpr (!std::is_floating_point_v<Sample>) value = std::nearbyint(value);
        reinterpret_cast<Sample*>(out.plane(c))[size_t(row) * size_t(part.width) + size_t(column)] =
            static_cast<Sample>(value);
      }
    }
  }
}

template <class Sample>
void warp_samples(const WarpedPicture& picture, const Window& part, Picture& out) {
  if (takes_nearest(picture.warp, picture.is_mask)) return nearest<Sample>(picture, part, out);
  bilinear<Sample>(picture, part, out);
}

}  // namespace

bool is_wide(const WarpedPicture& picture) {
  constexpr int kWord = 4;  // channels of a pixel word
  return dtype_of(picture) != DType::kUInt8 || source_channels(picture) > kWord;
}

Picture warp_wide(const WarpedPicture& picture, const Window& part) {
  Picture out(picture.from->channels, part.height, part.width, picture.from->dtype);
  switch (out.dtype) {
    case DType::kUInt8:
      warp_samples<uint8_t>(picture, part, out);
      break;
    case DType::kUInt16:
      warp_samples<uint16_t>(picture, part, out);
      break;
    default:
      warp_samples<float>(picture, part, out);
      break;
  }
  return out;
}

}  // namespace headrace
