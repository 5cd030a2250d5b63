// SPDX-License-Identifier: Apache-2.0
// The loop of anchor_match.cc in lanes. Included by anchor_match.cc with lanes of one number, and
// by each level's file after its own, between its target pragmas. Internal to kernels/.
#pragma once

#include "headrace/kernels/boxes/anchor_match_levels.h"

namespace headrace {
namespace {

int32_t match_in_lanes(const AnchorColumns& anchors, const float* box, int32_t row,
                       AnchorMatches& matches) {
  const Floats left = all(box[0]), top = all(box[1]), right = all(box[2]), bottom = all(box[3]);
  const Floats whole = all((box[2] - box[0]) * (box[3] - box[1]));
  const Floats zero = all(0.0f), criteria = all(matches.criteria);
  const Numbers its_row = all(row);
  Floats largest = all(-1.0f);
  Numbers largest_at = all(0), at = lane_numbers();
  const size_t count = anchors.padded_size();
  for (size_t i = 0; i < count; i += kLanes) {
    const Floats wide =
        difference(least_of(load(&anchors.right[i]), right), most_of(load(&anchors.left[i]), left));
    const Floats high =
        difference(least_of(load(&anchors.bottom[i]), bottom), most_of(load(&anchors.top[i]), top));
    const Floats shared = product(most_of(wide, zero), most_of(high, zero));
    const Floats iou = quotient(shared, difference(sum(whole, load(&anchors.area[i])), shared));
    const Mask leads = at_least(iou, largest);
    largest = chosen(leads, iou, largest);
    largest_at = chosen(leads, at, largest_at);
    at = sum(at, all(kLanes));
    const Floats best = load(&matches.best[i]);
    const Mask takes = both(above(iou, criteria), at_least(iou, best));
    store(&matches.best[i], chosen(takes, iou, best));
    store(&matches.row[i], chosen(takes, its_row, load(&matches.row[i])));
  }
  float ious[kLanes];
  int32_t places[kLanes];
  store(ious, largest);
  store(places, largest_at);
  int lane = 0;
  for (int i = 1; i < kLanes; ++i) {
    const bool leads = ious[i] > ious[lane] || (ious[i] == ious[lane] && places[i] > places[lane]);
    if (leads) lane = i;
  }
  return places[lane];
}

constexpr AnchorKernels kKernels{match_in_lanes};

}  // namespace
}  // namespace headrace
