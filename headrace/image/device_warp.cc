// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/device_warp.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "headrace/image/warp_pass.h"
#include "headrace/image/warp_positions.h"

namespace headrace {
namespace {

Recipe warped(const PendingPass& pass, const std::shared_ptr<const Picture>& pixels) {
  return Recipe(std::make_shared<const WarpedPicture>(
      WarpedPicture{.from = pixels, .warp = *pass.warp, .is_mask = false}));
}

constexpr PassFunction kWarpPass{warped, PassCode::kWarp};

}  // namespace

PendingPass warp_pass(const Warp& warp) {
  PendingPass pass{.function = &kWarpPass, .warp = std::make_shared<const Warp>(warp)};
  std::ranges::copy(warp.style.fill, pass.numbers.begin());
  return pass;
}

Warp warp_of(const PendingPass& pass) {
  Warp warp = *pass.warp;
  warp.style.fill = std::span(pass.numbers).first(warp.style.fill.size());
  return warp;
}

bool runs_on_device(const Warp& warp, bool is_mask, int channels) {
  if (warp.field || warp.quarter_turns || channels < 1 || channels > 4) return false;
  if (warp.style.fill.size() > 4) return false;
  const bool nearest = takes_nearest(warp, is_mask);
  if (!nearest && warp.style.interpolation != Filter::kBilinear) return false;
  const bool fixed = nearest && warp.style.arithmetic == Arithmetic::kPillow &&
                     warp.map == Warp::Map::kAffine && !keeps_axes(warp);
  return !fixed || fits_fixed(warp);
}

WarpJob device_warp_of(const Warp& warp, bool is_mask, int channels, Size from, const Window& part,
                       std::vector<int32_t>& tables) {
  WarpJob job{.source_height = from.height,
              .source_width = from.width,
              .bilinear = !takes_nearest(warp, is_mask),
              .divides = warp.map == Warp::Map::kPerspective};
  job.planes.height = part.height;
  job.planes.width = part.width;
  job.planes.channels = channels;
  for (int c = 0; c < channels; ++c) {
    const double fill = fill_of(warp, is_mask, size_t(c));
    job.fill[c] = static_cast<uint8_t>(fill);
    job.blended_fill[c] = static_cast<float>(fill);
  }
  if (warp.style.arithmetic == Arithmetic::kTorch) {
    job.torch = torch_grid_of(warp, from, part);
    job.fills = !warp.style.fill.empty();
    return job;
  }
  job.lookup = WarpLookup::kDoubles;
  job.column = part.x;
  job.row = part.y;
  std::ranges::copy(warp.lookup, job.pillow);
  if (job.bilinear || job.divides) return job;
  if (keeps_axes(warp)) {
    job.lookup = WarpLookup::kAxes;
    job.table = static_cast<int64_t>(tables.size());
    std::ranges::copy(source_columns(warp, from, part), std::back_inserter(tables));
    std::ranges::copy(source_rows(warp, from, part), std::back_inserter(tables));
    return job;
  }
  job.lookup = WarpLookup::kFixed;
  const FixedLookup fixed = fixed_lookup_of(warp, part);
  job.fixed = fixed.row;
  job.down_x = fixed.down_x;
  job.down_y = fixed.down_y;
  return job;
}

}  // namespace headrace
