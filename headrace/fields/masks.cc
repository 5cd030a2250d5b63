// SPDX-License-Identifier: Apache-2.0
// Instance masks: planes of (..., H, W) over the record's pictures, one per instance, or a map such
// as depth. They may have any dtype: values are moved, never interpolated.
//
// Without a warp, each row comes from a row and each column from a column, so a geometry reduces to
// two index lists, computed one axis at a time and applied once. With a warp, each position has its
// own source. Outside the image the value is 0, regardless of a warp's mask_fill, since that is a
// class id, which instances and depths do not have.
#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/fields/geometry.h"
#include "headrace/fields/numbers.h"
#include "headrace/kernels/resample/resample.h"

namespace headrace {
namespace {

constexpr int kBorder = -1;

const ErrorCode kOtherSize{
    "HR0122", ErrorKind::kData, "masks and image differ in size",
    "Masks of shape (..., H, W) cover the record's image, but these masks differ from the image in "
    "height or width, so a geometric transform cannot move both together. Restrict the transform "
    "to the image with fields=, or declare that the masks do not belong to the image with "
    "kinds={\"masks\": \"tensor\"}."};

const ErrorCode kTooLarge{
    "HR0124", ErrorKind::kResource, "masks too large to transform",
    "Masks of shape (..., H, W) are resized with their image, but these masks would exceed one "
    "record's share of memory_limit. Nothing was allocated. Use a smaller Resize, fewer instances "
    "per record, or a higher memory_limit."};

// For each position along an axis of the result, its source position.
using Places = std::vector<int32_t>;

Places all_places(int extent) {
  Places places(static_cast<size_t>(extent));
  std::iota(places.begin(), places.end(), 0);
  return places;
}

void cut(Places& places, int begin, int extent) {
  places.erase(places.begin(), places.begin() + begin);
  places.resize(static_cast<size_t>(extent));
}

void add_border(Places& places, int before, int after, Padding padding) {
  if (padding != Padding::kConstant) {
    const int size = static_cast<int>(places.size());
    Places to;
    for (int at = -before; at < size + after; ++at) {
      to.push_back(places[static_cast<size_t>(padded_index(padding, at, size))]);
    }
    places = std::move(to);
    return;
  }
  places.insert(places.begin(), static_cast<size_t>(before), kBorder);
  places.insert(places.end(), static_cast<size_t>(after), kBorder);
}

// Like "nearest" in Pillow and torchvision.
void resample(Places& places, int extent) {
  if (static_cast<int>(places.size()) == extent) return;
  Places to = nearest_samples(Filter::kNearest, static_cast<int>(places.size()), extent);
  for (int32_t& place : to) place = places[static_cast<size_t>(place)];
  places = std::move(to);
}

struct Plane {
  explicit Plane(Size size) : rows(all_places(size.height)), columns(all_places(size.width)) {}

  void move(const Geometry::Move& by) {
    std::visit(Cases{[&](const Geometry::Crop& crop) {
                       cut(rows, crop.window.y, crop.window.height);
                       cut(columns, crop.window.x, crop.window.width);
                     },
                     [&](const Geometry::Pad& pad) {
                       add_border(rows, pad.borders.top, pad.borders.bottom, pad.padding);
                       add_border(columns, pad.borders.left, pad.borders.right, pad.padding);
                     },
                     [&](const Geometry::Resize& resize) {
                       resample(rows, resize.to.height);
                       resample(columns, resize.to.width);
                     },
                     [&](Geometry::FlipHorizontal) { std::ranges::reverse(columns); },
                     [&](Geometry::FlipVertical) { std::ranges::reverse(rows); },
                     [&](Geometry::Transpose) {
                       std::swap(rows, columns);
                       transposed = !transposed;
                     },
                     [](const Warp&) {}},  // not separable into rows and columns
               by);
  }

  Places rows, columns;
  bool transposed = false;  // rows are the source's columns
};

// The sources of a row's items; usually only its ends are border.
struct RowPlaces {
  explicit RowPlaces(std::span<const int32_t> from) : places(from) {
    const auto is_item = [](int32_t place) { return place != kBorder; };
    begin = size_t(std::ranges::find_if(from, is_item) - from.begin());
    end = begin;
    while (end < from.size() && is_item(from[end])) ++end;
    is_run = true;
    for (size_t at = begin; at + 1 < end; ++at) is_run = is_run && from[at + 1] == from[at] + 1;
  }

  // `from`: a source row, whose items are `step` bytes apart and may be unaligned.
  template <class Item>
  void take(const uint8_t* from, size_t step, Item* to) const {
    const auto item = [&](size_t at, size_t apart) {
      Item value;
      std::memcpy(&value, from + size_t(places[at]) * apart, sizeof value);
      return value;
    };
    std::fill(to, to + begin, Item{});
    if (is_run && step == sizeof(Item)) {
      if (begin < end) std::memcpy(to + begin, from + places[begin] * step, (end - begin) * step);
    } else if (step == sizeof(Item)) {
      for (size_t at = begin; at < end; ++at) to[at] = item(at, sizeof(Item));
    } else {
      for (size_t at = begin; at < end; ++at) to[at] = item(at, step);
    }
    for (size_t at = end; at < places.size(); ++at) {
      to[at] = places[at] == kBorder ? Item{} : item(at, step);
    }
  }

  std::span<const int32_t> places;
  size_t begin, end;  // range of items without border
  bool is_run;        // each source follows the previous one
};

// Maps each plane of `in` (with rows of `width` items) by `plane`. Positions outside are 0.
template <class Item>
void show(const Plane& plane, std::span<const uint8_t> in, int64_t planes, Size size, Buffer& out) {
  const size_t rows = plane.rows.size(), columns = plane.columns.size();
  out.resize(static_cast<size_t>(planes) * rows * columns * sizeof(Item));
  auto* to = reinterpret_cast<Item*>(out.data());
  const size_t stride = size_t(size.width) * sizeof(Item), area = stride * size_t(size.height);
  const RowPlaces across(plane.columns);
  for (size_t at = 0; at < size_t(planes); ++at) {
    const uint8_t* const from = in.data() + at * area;
    for (size_t y = 0; y < rows; ++y, to += columns) {
      const int32_t row = plane.rows[y];
      if (row == kBorder) {
        std::fill(to, to + columns, Item{});
      } else if (y > 0 && row == plane.rows[y - 1]) {
        std::copy_n(to - columns, columns, to);
      } else if (plane.transposed) {
        across.take(from + size_t(row) * sizeof(Item), stride, to);
      } else {
        across.take(from + size_t(row) * stride, sizeof(Item), to);
      }
    }
  }
}

// Maps each position of each plane from its source position in the warp.
template <class Item>
void show_warped(const Warp& warp, std::span<const uint8_t> in, int64_t planes, Size size,
                 Buffer& out) {
  const size_t width = size_t(warp.to.width), area = size_t(size.height) * size_t(size.width);
  out.resize(size_t(planes) * size_t(warp.to.height) * width * sizeof(Item));
  std::vector<int32_t> offsets(width + 16);
  NearestOffsets rows(warp, size, {0, 0, warp.to.width, warp.to.height});
  for (int y = 0; y < warp.to.height; ++y) {
    rows.next_row(offsets.data());
    for (size_t plane = 0; plane < size_t(planes); ++plane) {
      const uint8_t* const from = in.data() + plane * area * sizeof(Item);
      const size_t row = plane * size_t(warp.to.height) + size_t(y);
      auto* const to = reinterpret_cast<Item*>(out.data()) + row * width;
      for (size_t x = 0; x < width; ++x) {
        Item value{};
        if (offsets[x] >= 0) {
          std::memcpy(&value, from + size_t(offsets[x]) * sizeof(Item), sizeof(Item));
        }
        to[x] = value;
      }
    }
  }
}

// Planes being moved, with one implementation per item size.
class MovingPlanes {
 public:
  MovingPlanes(FieldValue& value, const Renderer& renderer)
      : value_(value), most_(renderer.largest_value()) {
    const Shape& shape = value.shape;
    count_ = std::accumulate(shape.begin(), shape.end() - 2, int64_t{1}, std::multiplies<>());
  }

  Result<void> show_plane(const Plane& plane, Size size) {
    const Size to{static_cast<int>(plane.rows.size()), static_cast<int>(plane.columns.size())};
    return make(to, [&]<class Item>(Item, Buffer& made) {
      show<Item>(plane, value_.bytes, count_, size, made);
    });
  }
  Result<void> warp(const Warp& by, Size size) {
    return make(by.to, [&]<class Item>(Item, Buffer& made) {
      show_warped<Item>(by, value_.bytes, count_, size, made);
    });
  }

 private:
  // `fill(Item, buffer)` makes planes of the size.
  template <class Fill>
  Result<void> make(Size to, const Fill& fill) {
    size_t bytes = size_of(value_.dtype);
    bool fits = true;
    for (const int64_t factor : {count_, int64_t{to.height}, int64_t{to.width}}) {
      fits = fits && !__builtin_mul_overflow(bytes, static_cast<size_t>(factor), &bytes);
    }
    if (!fits || bytes > most_) {
      return Error{.code = &kTooLarge,
                   .what = std::to_string(count_) + " planes would become " +
                           std::to_string(to.height) + " x " + std::to_string(to.width) +
                           " (height x width)"};
    }
    Buffer made;
    switch (size_of(value_.dtype)) {
      case 1:
        fill(uint8_t{}, made);
        break;
      case 2:
        fill(uint16_t{}, made);
        break;
      case 4:
        fill(uint32_t{}, made);
        break;
      default:
        fill(uint64_t{}, made);
    }
    Shape& shape = value_.shape;
    shape[shape.size() - 2] = to.height;
    shape.back() = to.width;
    value_.own(std::move(made));
    return {};
  }

  FieldValue& value_;
  const size_t most_;
  int64_t count_;
};

Result<void> masks_follow(const FollowContext& way, FieldValue& value) {
  const int64_t height = value.shape[value.shape.size() - 2], width = value.shape.back();
  if (height != way.canvas.height || width != way.canvas.width) {
    return Error{.code = &kOtherSize,
                 .what = "the planes are " + std::to_string(height) + " x " +
                         std::to_string(width) + " (height x width), but the image is " +
                         std::to_string(way.canvas.height) + " x " +
                         std::to_string(way.canvas.width)};
  }
  MovingPlanes planes(value, way.renderer);
  Size canvas = way.canvas;
  std::optional<Plane> plane;  // accumulated moves since the last warp
  const auto show_moved = [&]() -> Result<void> {
    if (!plane) return {};
    Result<void> done = planes.show_plane(*plane, canvas);
    canvas = {static_cast<int>(plane->rows.size()), static_cast<int>(plane->columns.size())};
    plane.reset();
    return done;
  };
  for (const Geometry::Move& move : way.geometry.moves()) {
    const Warp* const warp = std::get_if<Warp>(&move);
    if (!warp) {
      if (!plane) plane.emplace(canvas);
      plane->move(move);
      continue;
    }
    if (Result<void> done = show_moved(); !done) return done;
    if (Result<void> done = planes.warp(*warp, canvas); !done) return done;
    canvas = warp->to;
  }
  return show_moved();
}

std::string masks_want(const FieldState& field) {
  if (field.shape.size() < 2) return "only planes of shape (..., H, W) can follow it";
  // Undeclared bytes may be a picture or class ids, and a picture needs a filter.
  const size_t axes = field.shape.size();
  const int64_t channels = axes == 3 ? field.shape[0] : axes == 2 ? 1 : 0;
  const bool colors = channels == 3 || channels == 4;
  if (field.dtype != DType::kUInt8 || (!colors && channels != 1)) return {};
  return "with kinds={\"" + field.name + "\": " + (colors ? "\"image\"" : "\"mask\"") +
         "} of the source, if it is one";
}

void masks_plan(FieldState& field, const FieldState& picture) {
  std::copy(picture.shape.end() - 2, picture.shape.end(), field.shape.end() - 2);
}

bool take_masks(Field& field) {
  return field.shape.size() >= 2 && take_numbers(field, FieldKind::kMasks);
}

const KindRecord kMasks{
    .name = "masks",
    .doc =
        "Planes, (..., H, W), aligned with the record's images: one per instance, or a map such as "
        "depth. They follow the images; their values are never interpolated, and borders are 0.",
    .kind = FieldKind::kMasks,
    .spatial = true,
    .take = take_masks,
    .begin = begin_numbers,
    .follow = masks_follow,
    .wants = masks_want,
    .plan = masks_plan};
const Register<KindRecord> registered_masks(kMasks);

}  // namespace
}  // namespace headrace
