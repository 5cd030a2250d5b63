// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/warp_pass.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "headrace/image/pixel_map.h"
#include "headrace/image/warp_positions.h"

namespace headrace {
namespace {

constexpr int kStripRows = 16;
constexpr int kBandRows = 4 * kStripRows;
constexpr size_t kBandBytes = size_t{512} << 10;  // largest source that needs no bands
constexpr double kMaxRepeated = 1.5;

// Stride of a row in the strip, which may be written and read beyond its end.
size_t strip_stride(int width) { return size_t(width) + 4 * kRowPadding; }
size_t places_stride(int width) { return size_t(width) + kPixelPadding; }

size_t words_bytes(Size from, int border) {
  const size_t pixels = size_t(from.height + 2 * border) * size_t(from.width + 2 * border);
  return (pixels + kPixelPadding) * sizeof(uint32_t);
}

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
  std::vector<int32_t> offsets(size_t(part.width) + kRowPadding);
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
  TorchPositions rows(picture.warp, size, part);
  std::vector<float> x(size_t(part.width) + kRowPadding), y(x.size());
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

double fill_of(const Warp& warp, bool is_mask, size_t channel) {
  const WarpStyle& style = warp.style;
  if (is_mask) return style.mask_fill;
  return style.fill.empty() ? 0 : style.fill.size() == 1 ? style.fill[0] : style.fill[channel];
}

bool takes_nearest(const Warp& warp, bool is_mask) {
  return is_mask || warp.style.interpolation == Filter::kNearest || warp.quarter_turns;
}

// One part of one picture. Each member makes its rows, one after another.
class WarpPass::Rows {
 public:
  Rows(WarpPass& memory, const WarpedPicture& picture, std::span<const WarpPatch> patches,
       const ChannelValues& source_fill, const Window& part, RowSink& sink)
      : memory_(memory),
        picture_(picture),
        warp_(picture.warp),
        from_(source_size(picture)),
        channels_(source_channels(picture)),
        patches_(patches.begin(), patches.end()),
        part_(part),
        sink_(sink) {
    std::ranges::sort(patches_, {}, &WarpPatch::x);
    for (int c = 0; c < channels_; ++c) {
      around_patches_ |= static_cast<uint32_t>(source_fill[size_t(c)]) << (8 * c);
    }
    for (int c = 0; c < channels_; ++c) {
      const double fill = fill_of(warp_, picture.is_mask, size_t(c));
      fill_word_ |= static_cast<uint32_t>(fill) << (8 * c);
      fill_[c] = static_cast<float>(fill);
    }
    const size_t stride = strip_stride(part.width);
    memory.strip_.resize(stride * kStripRows * size_t(channels_));
  }

  void nearest() {
    begin_bands(Margin::kNothing);
    NearestOffsets offsets(warp_, from_, part_);
    auto* const row = places<int32_t>();
    std::fill_n(row, places_stride(part_.width), kOutside);  // read past the row's end, too
    each_row([&](int, uint8_t* const* to) {
      offsets.next_row(row);
      take_pixels(source_.pixels, row, part_.width, fill_word_, channels_, to);
    });
  }

  void torch_bilinear() {
    begin_bands(Margin::kBlack);
    TorchPositions rows(warp_, from_, part_);
    auto *const x = places<float>(), *const y = x + places_stride(part_.width);
    const float* const fill = warp_.style.fill.empty() ? nullptr : fill_;
    each_row([&](int row, uint8_t* const* to) {
      rows.row(row, x, y);
      bilinear_as_torch(source_, x, y, part_.width, fill, channels_, to);
    });
  }

  void interpolate_as_pillow() {
    begin_bands(Margin::kEdge);
    const bool linear = warp_.style.interpolation == Filter::kBilinear;
    if (linear && warp_.map == Warp::Map::kAffine) {
      return each_row([&](int row, uint8_t* const* to) {
        affine_as_pillow(source_, warp_.lookup.data(), part_.x, part_.y + row, part_.width,
                         fill_word_, channels_, to);
      });
    }
    auto *const x = places<double>(), *const y = x + places_stride(part_.width);
    each_row([&](int row, uint8_t* const* to) {
      pillow_positions(warp_.lookup.data(), warp_.map == Warp::Map::kPerspective, part_.x,
                       part_.y + row, part_.width, x, y);
      (linear ? bilinear_as_pillow : bicubic_as_pillow)(source_, x, y, part_.width, fill_word_,
                                                        channels_, to);
    });
  }

 private:
  // What the border pixels on each side of the source are.
  enum class Margin : uint8_t { kNothing, kBlack, kEdge };

  // Rows of the result are made in bands, so that only the input of one band is packed at a time,
  // and stays in the cache; but not if bands would read the same pixels many times.
  void begin_bands(Margin margin) {
    margin_ = margin;
    band_rows_ = part_.height;
    const Window all = window_read(picture_, part_);
    if (words_bytes({all.height, all.width}, 1) <= kBandBytes) return;
    const Window first = window_read(picture_, band_at(0, kBandRows));
    const auto area = [](const Window& window) { return double{1} * window.width * window.height; };
    const int bands = (part_.height + kBandRows - 1) / kBandRows;
    if (bands * area(first) < kMaxRepeated * area(all)) band_rows_ = kBandRows;
  }
  Window band_at(int top, int rows) const {
    return {part_.x, part_.y + top, part_.width, std::min(rows, part_.height - top)};
  }

  // Packs the input of a band, so that the warp's lookups use the source's coordinates.
  void pack(const Window& window) {
    const int border = margin_ == Margin::kNothing ? 0 : 1;
    const int width = window.width, height = window.height, stride = width + 2 * border;
    memory_.words_.resize(words_bytes({height, width}, border));
    auto* const words = reinterpret_cast<uint32_t*>(memory_.words_.data());
    auto* const first = words + ptrdiff_t{border} * (stride + 1);
    source_ = {first - ptrdiff_t{window.y} * stride - window.x, from_.width, from_.height, stride};
    const bool black = margin_ == Margin::kBlack;
    const uint32_t marks = black && channels_ < 4 ? kIsPixel : 0;
    for (int y = 0; y < height; ++y) {
      uint32_t* const row = first + ptrdiff_t{y} * stride;
      pack_row(window, window.y + y, marks, row);
      if (border == 0) continue;
      row[-1] = black ? 0 : row[0];
      row[width] = black ? 0 : row[width - 1];
    }
    if (border == 0) return;
    uint32_t* const below = words + ptrdiff_t{stride} * (height + 1);
    if (black) {
      std::fill_n(words, stride, 0);
      std::fill_n(below, stride, 0);
    } else {
      std::copy_n(words + stride, stride, words);
      std::copy_n(below - stride, stride, below);
    }
  }

  // From left to right: each piece may write past its end, which the next one overwrites.
  void pack_row(const Window& window, int y, uint32_t marks, uint32_t* row) const {
    int done = window.x;
    const auto fill_to = [&](int x) {
      std::fill(row + done - window.x, row + x - window.x, around_patches_ | marks);
    };
    for (const WarpPatch& patch : patches_) {
      const Window& of = patch.window;
      const int left = std::max(patch.x, window.x);
      const int right = std::min(patch.x + of.width, window.x + window.width);
      if (y < patch.y || y >= patch.y + of.height || left >= right) continue;
      fill_to(left);
      const Picture& from = *patch.picture;
      const size_t at = size_t(of.y + y - patch.y) * from.width + size_t(of.x + left - patch.x);
      const uint8_t* planes[4] = {};
      for (int c = 0; c < channels_; ++c) planes[c] = from.plane(c) + at;
      pack_pixels(planes, channels_, right - left, marks, row + left - window.x);
      done = right;
    }
    fill_to(window.x + window.width);
  }

  // Two for each pixel.
  template <class Item>
  Item* places() {
    memory_.places_.resize(2 * places_stride(part_.width) * sizeof(Item));
    return reinterpret_cast<Item*>(memory_.places_.data());
  }

  template <class MakeRow>
  void each_row(const MakeRow& make) {
    const size_t stride = strip_stride(part_.width), plane = stride * kStripRows;
    for (int top = 0; top < part_.height; top += kStripRows) {
      if (top % band_rows_ == 0) pack(window_read(picture_, band_at(top, band_rows_)));
      RowBlock block{.y = top,
                     .count = std::min(kStripRows, part_.height - top),
                     .stride = static_cast<ptrdiff_t>(stride)};
      for (size_t c = 0; c < size_t(channels_); ++c) {
        block.channel[c] = memory_.strip_.data() + c * plane;
      }
      for (int row = 0; row < block.count; ++row) {
        uint8_t* to[4] = {};
        for (size_t c = 0; c < size_t(channels_); ++c) {
          to[c] = memory_.strip_.data() + c * plane + size_t(row) * stride;
        }
        make(top + row, to);
      }
      sink_.rows(block);
    }
  }

  WarpPass& memory_;
  const WarpedPicture& picture_;
  const Warp& warp_;
  const Size from_;
  const int channels_;
  std::vector<WarpPatch> patches_;  // from left to right
  uint32_t around_patches_ = 0;
  const Window part_;
  Margin margin_ = Margin::kNothing;
  int band_rows_ = 1;
  RowSink& sink_;
  PixelWords source_;
  uint32_t fill_word_ = 0;
  float fill_[4] = {};
};

void WarpPass::run(const WarpedPicture& picture, std::span<const WarpPatch> patches,
                   const ChannelValues& fill, const Window& part, RowSink& sink) {
  Rows rows(*this, picture, patches, fill, part, sink);
  if (takes_nearest(picture.warp, picture.is_mask)) {
    rows.nearest();
  } else if (picture.warp.style.arithmetic == Arithmetic::kTorch || picture.warp.field) {
    rows.torch_bilinear();
  } else {
    rows.interpolate_as_pillow();
  }
}

void WarpPass::free() {
  words_.free();
  strip_.free();
  places_.free();
}

size_t WarpPass::working_bytes(const WarpedPicture& picture) {
  const int width = picture.warp.to.width;
  return words_bytes(source_size(picture), 1) +
         strip_stride(width) * kStripRows * size_t(source_channels(picture)) +
         2 * places_stride(width) * sizeof(double);
}

bool needs_generic_warp(const WarpedPicture& picture) {
  constexpr int kWord = 4;  // channels of a pixel word
  return dtype_of(picture) != DType::kUInt8 || source_channels(picture) > kWord;
}

Picture generic_warp(const WarpedPicture& picture, const Window& part) {
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
