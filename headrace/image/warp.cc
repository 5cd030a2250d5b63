// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/warp.h"

#include <cstring>

#include "headrace/image/warp_places.h"

namespace headrace {
namespace {

// Of one channel: as many as there are, or one for all.
double fill_of(const Warp& warp, bool is_mask, size_t channel) {
  if (is_mask) return warp.style.mask_fill;
  const std::span<const double> fill = warp.style.fill;
  return fill.empty() ? 0 : fill.size() == 1 ? fill[0] : fill[channel];
}

// The outcome's rows, which are computed in memory that may be written beyond.
class RowBuffer {
 public:
  explicit RowBuffer(Picture& picture) : picture_(picture) {
    const size_t stride = size_t(picture.width) + 4 * kBeyondRow;
    memory_.resize(stride * size_t(picture.channels));
    for (int c = 0; c < picture.channels; ++c) to_[c] = memory_.data() + size_t(c) * stride;
  }
  uint8_t* const* row() const { return to_; }
  void keep(int y) {
    const auto width = size_t(picture_.width);
    for (int c = 0; c < picture_.channels; ++c) {
      std::memcpy(picture_.plane(c) + size_t(y) * width, to_[c], width);
    }
  }

 private:
  Picture& picture_;
  std::vector<uint8_t> memory_;
  uint8_t* to_[4] = {};
};

// One warp of one picture.
class Warper {
 public:
  Warper(const Picture& source, const Warp& warp, bool is_mask)
      : warp_(warp),
        from_{source.height, source.width},
        words_(size_t(source.height) * size_t(source.width) * sizeof(uint32_t)),
        out_(source.channels, warp.to.height, warp.to.width, source.dtype) {
    const uint8_t* planes[4] = {};
    for (int c = 0; c < source.channels; ++c) planes[c] = source.plane(c);
    auto* const words = reinterpret_cast<uint32_t*>(words_.data());
    pack_pixels(planes, source.channels, int64_t{from_.height} * from_.width, words);
    source_ = {words, from_.width, from_.height};
    for (int c = 0; c < source.channels; ++c) {
      const double fill = fill_of(warp, is_mask, size_t(c));
      fill_word_ |= static_cast<uint32_t>(fill) << (8 * c);
      fill_[c] = static_cast<float>(fill);
    }
  }

  void nearest() {
    NearestOffsets offsets(warp_, from_);
    std::vector<int32_t> row(size_t(warp_.to.width) + kBeyondRow);
    each_row([&](int, uint8_t* const* to) {
      offsets.next_row(row.data());
      take_pixels(source_.pixels, row.data(), warp_.to.width, fill_word_, out_.channels, to);
    });
  }

  void bilinear_of_torch() {
    TorchPlaces places(warp_, from_);
    std::vector<float> x(size_t(warp_.to.width) + kBeyondRow), y(x.size());
    const float* const fill = warp_.style.fill.empty() ? nullptr : fill_;
    each_row([&](int row, uint8_t* const* to) {
      places.row(row, x.data(), y.data());
      bilinear_as_torch(source_, x.data(), y.data(), warp_.to.width, fill, out_.channels, to);
    });
  }

  void smooth_of_pillow() {
    const bool linear = warp_.style.interpolation == Filter::kBilinear;
    std::vector<double> x(size_t(warp_.to.width) + kBeyondRow), y(x.size());
    each_row([&](int row, uint8_t* const* to) {
      pillow_places(warp_.lookup.data(), warp_.map == Warp::Map::kPerspective, row, warp_.to.width,
                    x.data(), y.data());
      (linear ? bilinear_as_pillow : bicubic_as_pillow)(source_, x.data(), y.data(), warp_.to.width,
                                                        fill_word_, out_.channels, to);
    });
  }

  Picture take() { return std::move(out_); }

 private:
  template <class MakeRow>
  void each_row(const MakeRow& make) {
    RowBuffer rows(out_);
    for (int y = 0; y < warp_.to.height; ++y) {
      make(y, rows.row());
      rows.keep(y);
    }
  }

  const Warp& warp_;
  const Size from_;
  Buffer words_;
  PixelWords source_;
  Picture out_;
  uint32_t fill_word_ = 0;
  float fill_[4] = {};
};

}  // namespace

Picture warped(const Picture& source, const Warp& warp, bool is_mask) {
  Warper warper(source, warp, is_mask);
  if (is_mask || warp.style.interpolation == Filter::kNearest || warp.quarter_turns) {
    warper.nearest();
  } else if (warp.style.arithmetic == Arithmetic::kTorch || warp.field) {
    warper.bilinear_of_torch();
  } else {
    warper.smooth_of_pillow();
  }
  return warper.take();
}

size_t warp_working_bytes(Size from) {
  return size_t(from.height) * size_t(from.width) * sizeof(uint32_t);
}

}  // namespace headrace
