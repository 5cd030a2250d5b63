// SPDX-License-Identifier: Apache-2.0
// The tasks of a render that are decoded together, by one codec.
//
// Note [Views that share a decode]
// Tasks whose recipes start from the same bytes (views of a Fork, crops of FiveCrop) are fed by one
// decode of the window that holds theirs, where that costs less than one for each: rows go to every
// pass while they are in the cache, and nothing is kept. Windows are exact, so the pixels are those
// of a decode of its own. Which damage is found in a file can depend on how far it is decoded: if a
// shared decode finds damage, each view is decoded alone, as if nothing had been shared.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "headrace/image/render_lane.h"

namespace headrace {

// A window to be decoded, and the lanes that need parts of it.
struct SharedDecode {
  std::vector<RenderLane*> views;
  Window window;
  double cost = 0;
  SharedRows rows;

  // Of all of the lanes. REQUIRES: this outlives it.
  DecodeJob job();
};

class SharedDecodes {
 public:
  // Whether this task fits: `at_once` windows are decoded efficiently, and a picture that is being
  // decoded already is another matter.
  bool takes(const Recipe& recipe, int at_once) const;
  // False if the task needs no pixels of its source: then it is done.
  bool add(RenderTask& task, const PassJob& job);

  std::span<SharedDecode> all() { return {decodes_.data(), windows_}; }
  // Lanes are used again from now on.
  void clear() { views_ = windows_ = 0; }
  // One that no task has. Valid until the next is added.
  RenderLane& free_lane();

  size_t held_bytes() const;
  void free();

 private:
  bool shares_source(const Recipe& recipe) const;
  void join(RenderLane& lane);

  std::vector<std::unique_ptr<RenderLane>> lanes_;  // the first `views_` have tasks
  std::vector<SharedDecode> decodes_;               // the first `windows_` are used
  size_t views_ = 0, windows_ = 0;
};

}  // namespace headrace
