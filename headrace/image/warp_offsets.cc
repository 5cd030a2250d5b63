// SPDX-License-Identifier: Apache-2.0
// Nearest pixels of a warp: torch has one way to find them, Pillow four, which differ at some
// pixels.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "headrace/image/warp_positions.h"

namespace headrace {

class NearestOffsets::Rows {
 public:
  virtual ~Rows() = default;
  virtual void next(int32_t* offsets) = 0;
};

namespace {

// Sums of steps start at the result's edge.
std::vector<int32_t> summed_places(double at, double step, int first, int count, int extent) {
  std::vector<int32_t> places;
  for (int i = 0; i < first; ++i) at += step;
  for (int i = 0; i < count; ++i, at += step) {
    places.push_back(at >= 0 && at < extent ? static_cast<int32_t>(at) : kOutside);
  }
  return places;
}

// A number in 16.16 fixed point; if it does not fit, the same value as on x86.
int32_t fixed_from(double value) {
  const double scaled = std::floor(value * 65536.0 + 0.5);
  const bool fits = scaled >= std::numeric_limits<int32_t>::min() &&
                    scaled <= std::numeric_limits<int32_t>::max();
  return fits ? static_cast<int32_t>(scaled) : std::numeric_limits<int32_t>::min();
}

}  // namespace

bool keeps_axes(const Warp& warp) { return warp.lookup[1] == 0 && warp.lookup[3] == 0; }

std::vector<int32_t> source_columns(const Warp& warp, Size from, const Window& part) {
  const double step = warp.lookup[0];
  return summed_places(warp.lookup[2] + step * 0.5, step, part.x, part.width, from.width);
}

std::vector<int32_t> source_rows(const Warp& warp, Size from, const Window& part) {
  const double step = warp.lookup[4];
  return summed_places(warp.lookup[5] + step * 0.5, step, part.y, part.height, from.height);
}

bool fits_fixed(const Warp& warp) {
  const auto& a = warp.lookup;
  for (const double x : {0.0, double(warp.to.width)}) {
    for (const double y : {0.0, double(warp.to.height)}) {
      if (!(std::abs(x * a[0] + y * a[1] + a[2]) < 32768.0)) return false;
      if (!(std::abs(x * a[3] + y * a[4] + a[5]) < 32768.0)) return false;
    }
  }
  return true;
}

FixedLookup fixed_lookup_of(const Warp& warp, const Window& part) {
  const auto& a = warp.lookup;
  const auto bits = [](double value) { return static_cast<uint32_t>(fixed_from(value)); };
  FixedLookup out{{0, 0, fixed_from(a[0]), fixed_from(a[3])}, bits(a[1]), bits(a[4])};
  const auto right = static_cast<uint32_t>(part.x), down = static_cast<uint32_t>(part.y);
  out.row.x = static_cast<int32_t>(bits(a[2] + a[0] * 0.5 + a[1] * 0.5) + down * out.down_x +
                                   right * bits(a[0]));
  out.row.y = static_cast<int32_t>(bits(a[5] + a[3] * 0.5 + a[4] * 0.5) + down * out.down_y +
                                   right * bits(a[3]));
  return out;
}

namespace {

class TorchRows final : public NearestOffsets::Rows {
 public:
  TorchRows(const Warp& warp, Size from, const Window& part)
      : places_(warp, from, part),
        from_(from),
        width_(part.width),
        x_(size_t(width_) + kRowPadding) {
    y_.resize(x_.size());
  }
  void next(int32_t* offsets) override {
    places_.row(row_++, x_.data(), y_.data());
    nearest_offsets(x_.data(), y_.data(), width_, from_.width, from_.height, offsets);
  }

 private:
  TorchPositions places_;
  const Size from_;
  const int width_;
  int row_ = 0;
  std::vector<float> x_, y_;
};

class ScaledRows final : public NearestOffsets::Rows {
 public:
  ScaledRows(const Warp& warp, Size from, const Window& part)
      : width_(from.width),
        columns_(source_columns(warp, from, part)),
        rows_(source_rows(warp, from, part)) {}
  void next(int32_t* offsets) override {
    const int32_t row = rows_[row_++];
    std::ranges::transform(columns_, offsets, [&](int32_t column) {
      return row == kOutside || column == kOutside ? kOutside : row * width_ + column;
    });
  }

 private:
  const int width_;
  const std::vector<int32_t> columns_, rows_;
  size_t row_ = 0;
};

class FixedRows final : public NearestOffsets::Rows {
 public:
  FixedRows(const Warp& warp, Size from, const Window& part)
      : from_(from), width_(part.width), at_(fixed_lookup_of(warp, part)) {}
  void next(int32_t* offsets) override {
    fixed_offsets(at_.row, width_, from_.width, from_.height, offsets);
    at_.row.x = static_cast<int32_t>(static_cast<uint32_t>(at_.row.x) + at_.down_x);
    at_.row.y = static_cast<int32_t>(static_cast<uint32_t>(at_.row.y) + at_.down_y);
  }

 private:
  const Size from_;
  const int width_;
  FixedLookup at_;
};

// For coordinates beyond fixed point: sums of doubles; and a perspective, computed per pixel.
class DoubleRows final : public NearestOffsets::Rows {
 public:
  DoubleRows(const Warp& warp, Size from, const Window& part)
      : warp_(warp),
        from_(from),
        part_(part),
        row_(part.y),
        x_(size_t(part.width) + kRowPadding),
        y_(x_.size()) {
    const auto& a = warp.lookup;
    at_x_ = a[2] + a[1] * 0.5 + a[0] * 0.5;
    at_y_ = a[5] + a[4] * 0.5 + a[3] * 0.5;
    for (int i = 0; i < part.y; ++i) {
      at_x_ += a[1];
      at_y_ += a[4];
    }
  }
  void next(int32_t* offsets) override {
    const auto& a = warp_.lookup;
    const int width = part_.width;
    if (warp_.map == Warp::Map::kPerspective) {
      pillow_positions(a.data(), true, part_.x, row_++, width, x_.data(), y_.data());
    } else {
      double x = at_x_, y = at_y_;
      for (int i = 0; i < part_.x; ++i) {
        x += a[0];
        y += a[3];
      }
      for (size_t i = 0; i < size_t(width); ++i) {
        x_[i] = std::exchange(x, x + a[0]);
        y_[i] = std::exchange(y, y + a[3]);
      }
      at_x_ += a[1];
      at_y_ += a[4];
    }
    truncated_offsets(x_.data(), y_.data(), width, from_.width, from_.height, offsets);
  }

 private:
  const Warp& warp_;
  const Size from_;
  const Window part_;
  int row_;
  double at_x_, at_y_;
  std::vector<double> x_, y_;
};

// Quarter turns copy pixels.
class RotatedRows final : public NearestOffsets::Rows {
 public:
  RotatedRows(const Warp& warp, Size from, const Window& part)
      : turns_(*warp.quarter_turns), from_(from), to_(warp.to), part_(part), row_(part.y) {}
  void next(int32_t* offsets) override {
    for (int i = 0; i < part_.width; ++i) {
      const int x = part_.x + i;
      const int back_x = to_.width - 1 - x, back_y = to_.height - 1 - row_;
      const int row = turns_ == 0 ? row_ : turns_ == 1 ? x : turns_ == 2 ? back_y : back_x;
      const int column = turns_ == 0 ? x : turns_ == 1 ? back_y : turns_ == 2 ? back_x : row_;
      offsets[i] = row * from_.width + column;
    }
    ++row_;
  }

 private:
  const int turns_;
  const Size from_, to_;
  const Window part_;
  int row_;
};

std::unique_ptr<NearestOffsets::Rows> rows_for(const Warp& warp, Size from, const Window& part) {
  if (warp.quarter_turns) return std::make_unique<RotatedRows>(warp, from, part);
  if (warp.style.arithmetic == Arithmetic::kTorch || warp.field) {
    return std::make_unique<TorchRows>(warp, from, part);
  }
  if (warp.map == Warp::Map::kAffine) {
    if (keeps_axes(warp)) return std::make_unique<ScaledRows>(warp, from, part);
    if (fits_fixed(warp)) return std::make_unique<FixedRows>(warp, from, part);
  }
  return std::make_unique<DoubleRows>(warp, from, part);
}

}  // namespace

NearestOffsets::NearestOffsets(const Warp& warp, Size from, const Window& part)
    : rows_(rows_for(warp, from, part)) {}
NearestOffsets::~NearestOffsets() = default;
void NearestOffsets::next_row(int32_t* offsets) { rows_->next(offsets); }

}  // namespace headrace
