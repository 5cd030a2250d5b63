// SPDX-License-Identifier: Apache-2.0
// Compares the anchors of a single-shot detector with boxes, one box at a time. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace {

// Anchors, one array per coordinate, so that several are compared at once. Arrays are padded with
// anchors that nothing matches.
class AnchorColumns {
 public:
  void add(float left, float top, float right, float bottom);
  size_t size() const { return size_; }
  size_t padded_size() const { return left.size(); }

  std::vector<float> left, top, right, bottom, area;

 private:
  size_t size_ = 0;
};

// The best match of each anchor so far, padded like the anchors.
struct AnchorMatches {
  AnchorMatches(const AnchorColumns& anchors, float criteria)
      : criteria(criteria), best(anchors.padded_size(), criteria), row(anchors.padded_size(), -1) {}
  float criteria;
  std::vector<float> best;   // IoU
  std::vector<int32_t> row;  // index of the box; -1: none
};

// Makes box `row`, (left, top, right, bottom), the match of each anchor whose IoU with it is above
// `criteria` and at least its best so far. Returns the anchor with the largest IoU, the last one
// among equals. IoUs are float32: intersection / (box + anchor - intersection). REQUIRES: at least
// one anchor.
int32_t match_anchors(const AnchorColumns& anchors, const float* box, int32_t row,
                      AnchorMatches& matches);

}  // namespace headrace
