// SPDX-License-Identifier: Apache-2.0
#ifndef HEADRACE_LEVEL

#include "headrace/kernels/boxes/anchor_match.h"

#include <limits>

#define HEADRACE_KERNEL "headrace/kernels/boxes/anchor_match.cc"
#include "headrace/kernels/each_level.h"

namespace headrace {

void AnchorColumns::add(float x0, float y0, float x1, float y1) {
  constexpr size_t kMaxLanes = 16;
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  const auto set = [&](std::vector<float>& column, float value) {
    if (size_ == column.size()) column.resize(size_ + kMaxLanes, kNone);
    column[size_] = value;
  };
  set(left, x0);
  set(top, y0);
  set(right, x1);
  set(bottom, y1);
  set(area, (x1 - x0) * (y1 - y0));
  ++size_;
}

int32_t match_anchors(const AnchorColumns& anchors, const float* box, int32_t row,
                      AnchorMatches& matches) {
  return HEADRACE_BY_LEVEL(match_in_lanes)(anchors, box, row, matches);
}

}  // namespace headrace

#else  // at each SIMD level

#include HEADRACE_LANES

namespace headrace::HEADRACE_LEVEL {
namespace {

int32_t match_in_lanes(const AnchorColumns& anchors, const float* box, int32_t row,
                       AnchorMatches& matches) {
  const Floats left = Set(box[0]), top = Set(box[1]), right = Set(box[2]), bottom = Set(box[3]);
  const Floats whole = Set((box[2] - box[0]) * (box[3] - box[1]));
  const Floats zero = Set(0.0f), criteria = Set(matches.criteria);
  const Ints its_row = Set(row);
  Floats largest = Set(-1.0f);
  Ints largest_at = Set(0), at = Iota();
  const size_t count = anchors.padded_size();
  for (size_t i = 0; i < count; i += kLanes) {
    const Floats wide = Sub(Min(Load(&anchors.right[i]), right), Max(Load(&anchors.left[i]), left));
    const Floats high = Sub(Min(Load(&anchors.bottom[i]), bottom), Max(Load(&anchors.top[i]), top));
    const Floats shared = Mul(Max(wide, zero), Max(high, zero));
    const Floats iou = Div(shared, Sub(Add(whole, Load(&anchors.area[i])), shared));
    const Mask leads = Ge(iou, largest);
    largest = IfThenElse(leads, iou, largest);
    largest_at = IfThenElse(leads, at, largest_at);
    at = Add(at, Set(kLanes));
    const Floats best = Load(&matches.best[i]);
    const Mask takes = And(Gt(iou, criteria), Ge(iou, best));
    Store(&matches.best[i], IfThenElse(takes, iou, best));
    Store(&matches.row[i], IfThenElse(takes, its_row, Load(&matches.row[i])));
  }
  float ious[kLanes];
  int32_t places[kLanes];
  Store(ious, largest);
  Store(places, largest_at);
  int lane = 0;
  for (int i = 1; i < kLanes; ++i) {
    const bool leads = ious[i] > ious[lane] || (ious[i] == ious[lane] && places[i] > places[lane]);
    if (leads) lane = i;
  }
  return places[lane];
}

}  // namespace
}  // namespace headrace::HEADRACE_LEVEL

#endif
