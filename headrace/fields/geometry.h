// SPDX-License-Identifier: Apache-2.0
// What a geometric operator decides, once per record: a short sequence of moves, which every field
// in the coordinates of the record's images follows, as defined by its kind (kind.h).
//
// The canvas is the current size of these images.
#pragma once

#include <array>
#include <cassert>
#include <span>
#include <variant>

#include "headrace/image/padding.h"
#include "headrace/image/recipe.h"
#include "headrace/image/warp.h"

namespace headrace {

struct Borders {
  int left = 0, top = 0, right = 0, bottom = 0;
  bool operator==(const Borders&) const = default;
};

class Geometry {
 public:
  struct Crop {
    Window window;  // inside the canvas, not empty
  };
  struct Resize {
    Size to;
    Filter filter;  // of images; masks and planes are resized with kNearest
  };
  struct Pad {
    Borders borders;
    std::span<const double> fill;          // one value, or one per channel; owned by the operator
    Padding padding = Padding::kConstant;  // if not kConstant: no fill, images and masks only
  };
  struct FlipHorizontal {};
  struct FlipVertical {};
  struct Transpose {};  // swaps the axes
  using Move = std::variant<Crop, Resize, Pad, FlipHorizontal, FlipVertical, Transpose, Warp>;

  Geometry& crop(const Window& window) { return add(Crop{window}); }
  Geometry& resize(Size to, Filter filter) { return add(Resize{to, filter}); }
  Geometry& pad(const Borders& borders, std::span<const double> fill,
                Padding padding = Padding::kConstant) {
    return add(Pad{borders, fill, padding});
  }
  Geometry& flip_horizontal() { return add(FlipHorizontal{}); }
  Geometry& flip_vertical() { return add(FlipVertical{}); }
  Geometry& transpose() { return add(Transpose{}); }
  Geometry& warp(const Warp& warp) { return add(warp); }

  std::span<const Move> moves() const { return {moves_.data(), count_}; }

 private:
  static constexpr size_t kMax = 4;
  Geometry& add(const Move& move) {
    assert(count_ < kMax);
    moves_[count_++] = move;
    return *this;
  }

  std::array<Move, kMax> moves_;
  size_t count_ = 0;
};

class Renderer;

// The arguments of KindRecord::follow, which applies a geometry to a value.
struct FollowContext {
  const Geometry& geometry;
  Size canvas;  // of the record's images, before the moves
  Renderer& renderer;
};

// Visits a variant's alternatives with one lambda each.
template <class... Calls>
struct Cases : Calls... {
  using Calls::operator()...;
};

// Size of the canvas after the move.
inline Size canvas_after(const Geometry::Move& move, Size canvas) {
  return std::visit(
      Cases{[](const Geometry::Crop& crop) { return Size{crop.window.height, crop.window.width}; },
            [](const Geometry::Resize& resize) { return resize.to; },
            [&](const Geometry::Pad& pad) {
              const Borders& add = pad.borders;
              return Size{canvas.height + add.top + add.bottom,
                          canvas.width + add.left + add.right};
            },
            [&](Geometry::Transpose) { return Size{canvas.width, canvas.height}; },
            [](const Warp& warp) { return warp.to; }, [&](auto) { return canvas; }},  // flips
      move);
}

}  // namespace headrace
