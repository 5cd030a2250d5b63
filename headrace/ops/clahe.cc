// SPDX-License-Identifier: Apache-2.0
// CLAHE: values spread evenly in each tile of a picture, as far as a limit of contrast allows.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/image/padding.h"
#include "headrace/kernels/planar_color.h"
#include "headrace/ops/color_steps.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/remade_op.h"

namespace headrace {
namespace {

constexpr std::string_view kClahe = "CLAHE";

using TileTable = std::array<uint8_t, 256>;

struct TileGrid {
  Size tiles;  // how many
  Size tile;   // pixels of each
};

// A tile's counts, cut at the limit; what was cut off is spread over all values, as OpenCV does.
void cut_at(int limit, std::array<int, 256>& counts) {
  int over = 0;
  for (int& count : counts) {
    over += std::max(count - limit, 0);
    count = std::min(count, limit);
  }
  int rest = over % 256;
  for (int& count : counts) count += over / 256;
  const int step = rest > 0 ? std::max(256 / rest, 1) : 256;
  for (int i = 0; i < 256 && rest > 0; i += step, --rest) ++counts[size_t(i)];
}

// The table of each tile of one channel. Where tiles do not fit, the picture is mirrored at its
// right and lower border until they do, as in OpenCV: by another whole tile's worth where one edge
// fits and the other does not.
std::vector<TileTable> tables_of(const Picture& picture, double clip_limit, Size tiles,
                                 TileGrid& grid) {
  Size size{picture.height, picture.width};
  if (size.height % tiles.height != 0 || size.width % tiles.width != 0) {
    size.height += tiles.height - size.height % tiles.height;
    size.width += tiles.width - size.width % tiles.width;
  }
  grid = {tiles, {size.height / tiles.height, size.width / tiles.width}};
  const auto padded = padded_part(picture, Padding::kReflect, {0, 0, size.width, size.height});
  const int pixels = grid.tile.height * grid.tile.width;
  const int limit = clip_limit > 0 ? std::max(static_cast<int>(clip_limit * pixels / 256), 1) : 0;
  const float scale = 255.0f / static_cast<float>(pixels);
  std::vector<TileTable> tables(size_t(tiles.height) * size_t(tiles.width));
  for (size_t t = 0; t < tables.size(); ++t) {
    const size_t top = t / size_t(tiles.width) * size_t(grid.tile.height);
    const size_t left = t % size_t(tiles.width) * size_t(grid.tile.width);
    std::array<int, 256> counts{};
    for (size_t y = top; y < top + size_t(grid.tile.height); ++y) {
      const uint8_t* const row = padded->plane(0) + y * size_t(size.width) + left;
      for (int x = 0; x < grid.tile.width; ++x) ++counts[row[x]];
    }
    if (limit > 0) cut_at(limit, counts);
    int sum = 0;
    for (size_t value = 0; value < 256; ++value) {
      sum += counts[value];
      const float share = std::nearbyint(static_cast<float>(sum) * scale);
      tables[t][value] = static_cast<uint8_t>(std::clamp(share, 0.0f, 255.0f));
    }
  }
  return tables;
}

// The two tiles that a place lies between, and the weight of the second.
struct Between {
  int first = 0, second = 0;
  float weight = 0;
};

std::vector<Between> places_between(int extent, int tile, int tiles) {
  std::vector<Between> out(static_cast<size_t>(extent));
  const float inverse = 1.0f / static_cast<float>(tile);
  for (int i = 0; i < extent; ++i) {
    const float at = static_cast<float>(i) * inverse - 0.5f;
    const int first = static_cast<int>(std::floor(at));
    out[size_t(i)] = {std::max(first, 0), std::min(first + 1, tiles - 1),
                      at - static_cast<float>(first)};
  }
  return out;
}

// One channel, (1, H, W).
void equalize_tiles(const Picture& in, double clip_limit, Size tiles, uint8_t* out) {
  TileGrid grid;
  const std::vector<TileTable> tables = tables_of(in, clip_limit, tiles, grid);
  const auto columns = places_between(in.width, grid.tile.width, tiles.width);
  const auto rows = places_between(in.height, grid.tile.height, tiles.height);
  const uint8_t* from = in.plane(0);
  for (const Between& row : rows) {
    const TileTable* const upper = tables.data() + size_t(row.first) * size_t(tiles.width);
    const TileTable* const lower = tables.data() + size_t(row.second) * size_t(tiles.width);
    for (const Between& column : columns) {
      const uint8_t value = *from++;
      const auto blend = [&](const TileTable* of) {
        return static_cast<float>(of[column.first][value]) * (1.0f - column.weight) +
               static_cast<float>(of[column.second][value]) * column.weight;
      };
      const float both = blend(upper) * (1.0f - row.weight) + blend(lower) * row.weight;
      *out++ = static_cast<uint8_t>(std::clamp(std::nearbyint(both), 0.0f, 255.0f));
    }
  }
}

class Clahe final : public RemadeOp {
 public:
  Clahe(const Arguments& arguments)
      : RemadeOp(kClahe),
        limit_(arguments.numbers("clip_limit")),
        tiles_(size_from(arguments.integers("tile_grid_size"))),
        luma_(arguments.text("channels") == "luma"),
        p_(arguments.number("p")) {
    if (limit_.front() > limit_.back()) {
      raise_misfit(kClahe, "clip_limit must be one number, or (smallest, largest)");
    }
  }

  Result<void> apply(OpContext& context) const override {
    if (!context.draws.coin(p_)) return {};
    const double limit = context.draws.uniform(limit_.front(), limit_.back());
    return remake_all(context, [&](const Picture& in, Picture& out) -> Result<void> {
      if (in.channels == 3 && luma_) {
        of_luma(in, limit, out);
      } else {
        of_each(in, limit, out);
      }
      return {};
    });
  }

 private:
  void plan_image(FieldState& image) const override { plan_step(table_step({}), image); }

  void of_each(const Picture& in, double limit, Picture& out) const {
    Picture channel(1, in.height, in.width, in.dtype);
    for (int c = 0; c < in.channels; ++c) {
      std::copy_n(in.plane(c), in.plane_bytes(), channel.plane(0));
      equalize_tiles(channel, limit, tiles_, out.plane(c));
    }
  }

  void of_luma(const Picture& in, double limit, Picture& out) const {
    constexpr size_t kBeyond = 63;
    Picture luma(1, in.height, in.width, in.dtype);
    std::vector<uint8_t> rgb(3 * (size_t(in.width) + kBeyond)), gray(size_t(in.width) + kBeyond);
    const uint8_t* const from[] = {rgb.data(), rgb.data() + gray.size(),
                                   rgb.data() + 2 * gray.size()};
    for (size_t y = 0; y < size_t(in.height); ++y) {
      const size_t first = y * size_t(in.width);
      for (int c = 0; c < 3; ++c) {
        std::copy_n(in.plane(c) + first, in.width, rgb.data() + size_t(c) * gray.size());
      }
      gray_from_rgb_rows(from, in.width, gray.data());
      std::copy_n(gray.data(), in.width, luma.plane(0) + first);
    }
    std::vector<uint8_t> spread(luma.plane_bytes());
    equalize_tiles(luma, limit, tiles_, spread.data());
    for (int c = 0; c < 3; ++c) {
      const uint8_t *const values = in.plane(c), *const old = luma.plane(0);
      uint8_t* const to = out.plane(c);
      for (size_t i = 0; i < spread.size(); ++i) {
        to[i] = static_cast<uint8_t>(std::clamp(values[i] + spread[i] - old[i], 0, 255));
      }
    }
  }

  const std::vector<double> limit_;
  const Size tiles_;
  const bool luma_;
  const double p_;
};

const OpRecord kClaheRecord{
    .name = "CLAHE",
    .doc =
        "Spreads values evenly in each tile of an image, up to a limit of contrast, with "
        "probability p.\n\n"
        "Images of one or three channels, (C, H, W), uint8; shape and dtype stay, and masks are "
        "left as they are. Between the middles of tiles their tables are blended. What comes "
        "before is computed first, and a second pass begins.",
    .params = {{.name = "clip_limit",
                .type = ParamType::kFloats,
                .doc = "How often a value may occur in a tile, times as often as on average: a "
                       "number; or (smallest, largest). 0: no limit.",
                .fallback = std::vector<double>{1, 4},
                .minimum = 0,
                .maximum = 256,
                .min_count = 1,
                .max_count = 2},
               {.name = "tile_grid_size",
                .type = ParamType::kInts,
                .doc = "Tiles: one number for both directions, or (rows, columns).",
                .fallback = std::vector<int64_t>{8, 8},
                .minimum = 1,
                .maximum = 64,
                .min_count = 1,
                .max_count = 2},
               {.name = "channels",
                .type = ParamType::kString,
                .doc = "Of colours: \"luma\" spreads their grey (Pillow's) and adds to each "
                       "channel what the grey gained, so that colour differences stay; \"each\" "
                       "spreads each channel by itself.",
                .fallback = std::string("luma"),
                .choices = {"luma", "each"}},
               probability_param("How probable it is that a record's images are changed.")},
    .oracle =
        "OpenCV's createCLAHE on a channel, bit for bit. (Albumentations spreads L of CIELAB; here "
        "it is luma.)",
    .example = {{"clip_limit", 3.0}, {"tile_grid_size", std::vector<int64_t>{2, 3}}, {"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<Clahe>(arguments);
    }};
const Register<OpRecord> registered_clahe(kClaheRecord);

}  // namespace
}  // namespace headrace
