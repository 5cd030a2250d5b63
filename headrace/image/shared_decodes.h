// SPDX-License-Identifier: Apache-2.0
// The tasks of a render() call that one codec decodes together.
//
// Note [Views that share a decode]
// Tasks whose recipes start from the same bytes (views of a Fork, crops of FiveCrop) share one
// decode of the smallest window that contains all of their windows, if that costs less than
// separate decodes. Each row goes to all passes while it is in the cache, and is not stored.
// Decoding a window is exact, so the pixels are the same as from separate decodes. But which damage
// is found in a file can depend on how far it is decoded: if a shared decode finds damage, each
// view is decoded separately, so that the result does not depend on sharing.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "headrace/image/render_lane.h"

namespace headrace {

// A window to decode, and the lanes that need parts of it.
struct SharedDecode {
  std::vector<RenderLane*> views;
  Window window;
  double cost = 0;
  SharedRows rows;

  // The decode that serves all lanes. REQUIRES: this object outlives the job.
  DecodeJob job();
};

class SharedDecodes {
 public:
  // Whether a task for this recipe can be added: there are fewer than `at_once` windows, the number
  // that is decoded efficiently; or it shares the picture of an earlier task.
  bool takes(const Recipe& recipe, int at_once) const;
  // Returns false if the task needs no pixels of its source; it is then finished.
  bool add(RenderTask& task, const PassJob& job);

  std::span<SharedDecode> all() { return {decodes_.data(), windows_}; }
  // Removes all tasks; their lanes are reused.
  void clear() { views_ = windows_ = 0; }
  // A lane without a task. Valid until the next task is added.
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
