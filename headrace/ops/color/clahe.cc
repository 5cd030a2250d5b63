// SPDX-License-Identifier: Apache-2.0
// CLAHE: equalizes the histogram of each tile of a picture, with limited contrast.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "headrace/base/registry.h"
#include "headrace/image/padding.h"
#include "headrace/kernels/color/planar_color.h"
#include "headrace/ops/color/color_steps.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/pixel_op.h"

namespace headrace {
namespace {

constexpr std::string_view kClahe = "CLAHE";

using TileTable = std::array<uint8_t, 256>;

struct TileGrid {
  Size tiles;  // how many
  Size tile;   // in pixels
};

// A tile's histogram, clipped at the limit; the excess is distributed over all values, as in
// OpenCV.
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

// One table per tile of one channel. If tiles do not divide the picture, it is mirrored at its
// right and lower border until they do, as in OpenCV: an edge that already divides is extended by a
// whole tile if the other one does not.
std::vector<TileTable> tables_of(const uint8_t* plane, Size picture, double clip_limit, Size tiles,
                                 TileGrid& grid) {
  Size size = picture;
  if (size.height % tiles.height != 0 || size.width % tiles.width != 0) {
    size.height += tiles.height - size.height % tiles.height;
    size.width += tiles.width - size.width % tiles.width;
  }
  grid = {tiles, {size.height / tiles.height, size.width / tiles.width}};
  std::vector<int> columns(size_t(size.width));
  for (int x = 0; x < size.width; ++x) {
    columns[size_t(x)] = padded_index(Padding::kReflect, x, picture.width);
  }
  const int pixels = grid.tile.height * grid.tile.width;
  const int limit = clip_limit > 0 ? std::max(static_cast<int>(clip_limit * pixels / 256), 1) : 0;
  const float scale = 255.0f / static_cast<float>(pixels);
  std::vector<TileTable> tables(size_t(tiles.height) * size_t(tiles.width));
  for (size_t t = 0; t < tables.size(); ++t) {
    const int top = static_cast<int>(t) / tiles.width * grid.tile.height;
    const int* const left = columns.data() + t % size_t(tiles.width) * size_t(grid.tile.width);
    std::array<int, 256> counts{};
    for (int y = top; y < top + grid.tile.height; ++y) {
      const uint8_t* const row =
          plane +
          size_t(padded_index(Padding::kReflect, y, picture.height)) * size_t(picture.width);
      for (int x = 0; x < grid.tile.width; ++x) ++counts[row[left[x]]];
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

// The two tiles whose centers are on either side of a position, and the weight of the second.
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

// One channel. `out` may be `in`.
void equalize_tiles(const uint8_t* in, Size size, double clip_limit, Size tiles, uint8_t* out) {
  TileGrid grid;
  const std::vector<TileTable> tables = tables_of(in, size, clip_limit, tiles, grid);
  const auto columns = places_between(size.width, grid.tile.width, tiles.width);
  const auto rows = places_between(size.height, grid.tile.height, tiles.height);
  const uint8_t* from = in;
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

void add_clamped(const uint8_t* in, const std::vector<int16_t>& gained, uint8_t* out) {
  for (size_t x = 0; x < gained.size(); ++x) {
    const int sum = in[x] + gained[x];
    out[x] = static_cast<uint8_t>(std::min(std::max(sum, 0), 255));
  }
}

class Clahe final : public WholeImageOp {
 public:
  Clahe(const Arguments& arguments)
      : WholeImageOp(kClahe),
        limit_(arguments.numbers("clip_limit")),
        tiles_(size_from(arguments.integers("tile_grid_size"))),
        luma_(arguments.text("channels") == "luma"),
        p_(arguments.number("p")) {
    if (limit_.front() > limit_.back()) {
      raise_invalid_argument(kClahe, "clip_limit must be one number, or (smallest, largest)");
    }
  }

  Result<void> apply(OpContext& context) const override {
    if (!context.draws.coin(p_)) return {};
    const double limit = context.draws.uniform(limit_.front(), limit_.back());
    return transform_images(context, [&](const Picture& in, Picture& out) -> Result<void> {
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
    for (int c = 0; c < in.channels; ++c) {
      equalize_tiles(in.plane(c), {in.height, in.width}, limit, tiles_, out.plane(c));
    }
  }

  // Gray values before and after are stored in the output's own memory, which is overwritten at the
  // end.
  void of_luma(const Picture& in, double limit, Picture& out) const {
    constexpr size_t kPadding = 63;
    const size_t width = size_t(in.width), room = width + kPadding;
    std::vector<uint8_t> rgb(3 * room), gray(room);
    const uint8_t* const from[] = {rgb.data(), rgb.data() + room, rgb.data() + 2 * room};
    for (size_t y = 0; y < size_t(in.height); ++y) {
      for (int c = 0; c < 3; ++c) {
        std::copy_n(in.plane(c) + y * width, width, rgb.data() + size_t(c) * room);
      }
      gray_from_rgb_rows(from, in.width, gray.data());
      std::copy_n(gray.data(), width, out.plane(0) + y * width);
    }
    equalize_tiles(out.plane(0), {in.height, in.width}, limit, tiles_, out.plane(1));
    std::vector<int16_t> gained(width);
    for (size_t y = 0; y < size_t(in.height); ++y) {
      const uint8_t *const old = out.plane(0) + y * width, *const now = out.plane(1) + y * width;
      for (size_t x = 0; x < width; ++x) gained[x] = static_cast<int16_t>(now[x] - old[x]);
      for (int c = 0; c < 3; ++c)
        add_clamped(in.plane(c) + y * width, gained, out.plane(c) + y * width);
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
        "Equalizes the histogram of each tile of an image, with limited contrast, with "
        "probability p.\n\n"
        "Images of one or three channels, (C, H, W), uint8; shape and dtype are unchanged, and "
        "so are masks. Lookup tables are interpolated between the centers of tiles. Earlier "
        "transforms are rendered first, which adds a pass over the image.",
    .page = {.section = "Color transforms", .step = "T.CLAHE(4.0, p=1.0)"},
    .params =
        {{.name = "clip_limit",
          .type = ParamType::kFloats,
          .doc = "Contrast limit: the maximum count of a value in a tile, as a multiple of the "
                 "average count. A number, or (smallest, largest). 0: no limit.",
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
          .doc = "For color images: \"luma\" equalizes their luma (Pillow's gray) and adds its "
                 "change to each channel, which keeps color differences; \"each\" equalizes each "
                 "channel separately.",
          .fallback = std::string("luma"),
          .choices = {"luma", "each"}},
         probability_param("Probability of changing a record's images.")},
    .oracle =
        "OpenCV's createCLAHE on a channel, bit for bit. (Albumentations equalizes L of CIELAB; "
        "here it is luma.)",
    .example = {{"clip_limit", 3.0}, {"tile_grid_size", std::vector<int64_t>{2, 3}}, {"p", 0.9}},
    .random = true,
    .make = [](const Arguments& arguments) -> std::unique_ptr<Op> {
      return std::make_unique<Clahe>(arguments);
    }};
const Register<OpRecord> registered_clahe(kClaheRecord);

}  // namespace
}  // namespace headrace
