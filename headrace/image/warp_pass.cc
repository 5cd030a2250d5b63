// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/warp_pass.h"

#include <algorithm>

#include "headrace/image/warp_places.h"

namespace headrace {
namespace {

constexpr int kStripRows = 16;

// Of one channel: as many as there are, or one for all.
double fill_of(const WarpedPicture& picture, size_t channel) {
  const WarpStyle& style = picture.warp.style;
  if (picture.is_mask) return style.mask_fill;
  return style.fill.empty() ? 0 : style.fill.size() == 1 ? style.fill[0] : style.fill[channel];
}

bool takes_nearest(const WarpedPicture& picture) {
  const Warp& warp = picture.warp;
  return picture.is_mask || warp.style.interpolation == Filter::kNearest || warp.quarter_turns;
}

// Of a row in the strip, which may be written and read beyond its end.
size_t strip_stride(int width) { return size_t(width) + 4 * kBeyondRow; }
size_t places_stride(int width) { return size_t(width) + kBeyondRow; }

size_t words_bytes(Size from, int border) {
  return size_t(from.height + 2 * border) * size_t(from.width + 2 * border) * sizeof(uint32_t);
}

Size size_of(const Picture& picture) { return {picture.height, picture.width}; }

}  // namespace

// One part of one picture. Each member makes its rows, one after the other.
class WarpPass::Rows {
 public:
  Rows(WarpPass& memory, const WarpedPicture& picture, const Window& part, RowSink& sink)
      : memory_(memory),
        picture_(picture),
        warp_(picture.warp),
        from_(size_of(*picture.from)),
        channels_(picture.from->channels),
        part_(part),
        sink_(sink) {
    for (int c = 0; c < channels_; ++c) {
      const double fill = fill_of(picture, size_t(c));
      fill_word_ |= static_cast<uint32_t>(fill) << (8 * c);
      fill_[c] = static_cast<float>(fill);
    }
    const size_t stride = strip_stride(part.width);
    memory.strip_.resize(stride * kStripRows * size_t(channels_));
  }

  void nearest() {
    pack();
    NearestOffsets offsets(warp_, from_, part_);
    auto* const row = places<int32_t>();
    std::fill_n(row, places_stride(part_.width), kOutside);  // read past the row's end, too
    each_row([&](int, uint8_t* const* to) {
      offsets.next_row(row);
      take_pixels(source_.pixels, row, part_.width, fill_word_, channels_, to);
    });
  }

  void bilinear_of_torch() {
    pack(Beside::kBlack);
    TorchPlaces rows(warp_, from_, part_);
    auto *const x = places<float>(), *const y = x + places_stride(part_.width);
    const float* const fill = warp_.style.fill.empty() ? nullptr : fill_;
    each_row([&](int row, uint8_t* const* to) {
      rows.row(row, x, y);
      bilinear_as_torch(source_, x, y, part_.width, fill, channels_, to);
    });
  }

  void smooth_of_pillow() {
    pack(Beside::kEdge);
    const bool linear = warp_.style.interpolation == Filter::kBilinear;
    if (linear && warp_.map == Warp::Map::kAffine) {
      return each_row([&](int row, uint8_t* const* to) {
        affine_as_pillow(source_, warp_.lookup.data(), part_.x, part_.y + row, part_.width,
                         fill_word_, channels_, to);
      });
    }
    auto *const x = places<double>(), *const y = x + places_stride(part_.width);
    each_row([&](int row, uint8_t* const* to) {
      pillow_places(warp_.lookup.data(), warp_.map == Warp::Map::kPerspective, part_.x,
                    part_.y + row, part_.width, x, y);
      (linear ? bilinear_as_pillow : bicubic_as_pillow)(source_, x, y, part_.width, fill_word_,
                                                        channels_, to);
    });
  }

 private:
  // What stands beside the source's pixels, one on each side.
  enum class Beside : uint8_t { kNothing, kBlack, kEdge };

  void pack(Beside beside = Beside::kNothing) {
    const int border = beside == Beside::kNothing ? 0 : 1;
    const int width = from_.width, height = from_.height, stride = width + 2 * border;
    memory_.words_.resize(words_bytes(from_, border));
    auto* const words = reinterpret_cast<uint32_t*>(memory_.words_.data());
    auto* const first = words + ptrdiff_t{border} * (stride + 1);
    source_ = {first, width, height, stride};
    const uint8_t* planes[4] = {};
    for (int c = 0; c < channels_; ++c) planes[c] = picture_.from->plane(c);
    if (beside == Beside::kNothing) {
      return pack_pixels(planes, channels_, int64_t{width} * height, 0, words);
    }
    const bool black = beside == Beside::kBlack;
    const uint32_t marks = black && channels_ < 4 ? kIsPixel : 0;
    for (int y = 0; y < height; ++y) {  // the end of a row is written beyond, and then the next row
      uint32_t* const row = first + ptrdiff_t{y} * stride;
      pack_pixels(planes, channels_, width, marks, row);
      row[-1] = black ? 0 : row[0];
      row[width] = black ? 0 : row[width - 1];
      for (int c = 0; c < channels_; ++c) planes[c] += width;
    }
    uint32_t* const below = words + ptrdiff_t{stride} * (height + 1);
    if (black) {
      std::fill_n(words, stride, 0);
      std::fill_n(below, stride, 0);
    } else {
      std::copy_n(words + stride, stride, words);
      std::copy_n(below - stride, stride, below);
    }
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
  const Window part_;
  RowSink& sink_;
  PixelWords source_;
  uint32_t fill_word_ = 0;
  float fill_[4] = {};
};

void WarpPass::run(const WarpedPicture& picture, const Window& part, RowSink& sink) {
  Rows rows(*this, picture, part, sink);
  if (takes_nearest(picture)) {
    rows.nearest();
  } else if (picture.warp.style.arithmetic == Arithmetic::kTorch || picture.warp.field) {
    rows.bilinear_of_torch();
  } else {
    rows.smooth_of_pillow();
  }
}

void WarpPass::free() {
  words_.free();
  strip_.free();
  places_.free();
}

size_t WarpPass::working_bytes(const WarpedPicture& picture) {
  const Size from = size_of(*picture.from);
  const int width = picture.warp.to.width;
  return words_bytes(from, 1) + strip_stride(width) * kStripRows * size_t(picture.from->channels) +
         2 * places_stride(width) * sizeof(double);
}

}  // namespace headrace
