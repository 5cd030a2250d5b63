// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/resize_batch.h"

#include <algorithm>
#include <compare>
#include <map>
#include <string>
#include <tuple>

#include "headrace/base/error.h"
#include "headrace/kernels/resample/resample.h"

namespace headrace {
namespace {

const ErrorCode kBadSize{
    "HR0863", ErrorKind::kConfig, "impossible resize of a batch",
    "A batch is resized from windows of at least one pixel to a size of at least one pixel, and "
    "all its pictures have the same one to four channels."};

std::string text_of(int32_t height, int32_t width) {
  return std::to_string(height) + " x " + std::to_string(width);
}

// One axis of what a window becomes, and the part of it that the batch shows.
struct Outcome {
  int whole = 0, begin = 0, size = 0;
  auto operator<=>(const Outcome&) const = default;
};

Outcome outcome_across(const ResizeTo& to, const ResizeWindow& window) {
  return {window.to_width ? window.to_width : to.width, window.left, to.width};
}
Outcome outcome_down(const ResizeTo& to, const ResizeWindow& window) {
  return {window.to_height ? window.to_height : to.height, window.top, to.height};
}

bool is_inside(const Outcome& outcome) {
  return outcome.begin >= 0 && outcome.size <= outcome.whole - outcome.begin;
}

void check_sizes(const ResizeTo& to, std::span<const ResizeWindow> windows) {
  if (to.height < 1 || to.width < 1) {
    raise(kBadSize, "a batch cannot be resized to " + text_of(to.height, to.width));
  }
  if (to.channels < 1 || to.channels > 4) {
    raise(kBadSize, "a picture has 1 to 4 channels (got " + std::to_string(to.channels) + ")");
  }
  for (size_t i = 0; i < windows.size(); ++i) {
    if (windows[i].height < 1 || windows[i].width < 1) {
      raise(kBadSize, "window " + std::to_string(i) + " is empty (" +
                          text_of(windows[i].height, windows[i].width) + ")");
    }
    const Outcome across = outcome_across(to, windows[i]), down = outcome_down(to, windows[i]);
    if (!is_inside(across) || !is_inside(down)) {
      raise(kBadSize, "of window " + std::to_string(i) + ", which becomes " +
                          text_of(down.whole, across.whole) + ", " + text_of(to.height, to.width) +
                          " from " + text_of(down.begin, across.begin) + " are not there");
    }
  }
}

// One axis in the plan's tables, and the samples of its input that it reads.
struct PlannedAxis {
  int64_t table = 0;
  int32_t low = 0, samples = 0;
};

class TableWriter {
 public:
  TableWriter(Filter filter, std::vector<int32_t>& tables) : filter_(filter), tables_(tables) {}

  PlannedAxis axis(int input, const Outcome& output, bool flip) {
    const auto [known, is_new] = axes_.try_emplace(std::tuple(input, output, flip));
    if (is_new) known->second = write(input, output, flip);
    return known->second;
  }

 private:
  PlannedAxis write(int input, const Outcome& to, bool flip) {
    axis_.make(filter_, input, to.whole, to.begin, to.begin + to.size, false, flip);
    const int output = to.size;
    const PlannedAxis planned{static_cast<int64_t>(tables_.size()), axis_.low(),
                              axis_.high() - axis_.low()};
    if (axis_.copies()) {  // weights that give the sample itself
      for (int i = 0; i < output; ++i) tables_.push_back(flip ? output - 1 - i : i);
      tables_.insert(tables_.end(), output, 1);
      tables_.insert(tables_.end(), output, 1 << 22);
      return planned;
    }
    for (int i = 0; i < output; ++i) tables_.push_back(axis_.first(i));
    for (int i = 0; i < output; ++i) tables_.push_back(axis_.count(i));
    for (int tap = 0; tap < axis_.max_count(); ++tap) {
      for (int i = 0; i < output; ++i) tables_.push_back(axis_.weight(i, tap));
    }
    return planned;
  }

  const Filter filter_;
  std::vector<int32_t>& tables_;
  ResampleAxis axis_;
  std::map<std::tuple<int, Outcome, bool>, PlannedAxis> axes_;
};

// The jobs of one window; the scratch picture between them is dense (C, rows, columns).
void plan_window(const ResizeTo& to, const ResizeWindow& window, int64_t batch_offset,
                 TableWriter& writer, ResizePlan& plan) {
  const Outcome width = outcome_across(to, window), height = outcome_down(to, window);
  const PlannedAxis across = writer.axis(window.width, width, window.flip);
  const PlannedAxis down = writer.axis(window.height, height, false);
  const bool down_first =
      vertical_first(to.filter, window.width, window.height, width.whole, height.whole);

  ResampleJob first{
      .from = window.from + down.low * window.strides.row + across.low * window.strides.column,
      .to = plan.scratch_bytes,
      .from_strides = window.strides,
      .rows = down_first ? to.height : down.samples,
      .columns = down_first ? across.samples : to.width,
      .vertical = down_first,
      .table = (down_first ? down : across).table};
  first.to_strides = PictureStrides::channels_first(to.channels, first.rows, first.columns);
  plan.scratch_bytes += first.to_strides.picture;
  plan.first_rows = std::max(plan.first_rows, first.rows);
  plan.second.push_back({.from = first.to,
                         .to = batch_offset,
                         .from_strides = first.to_strides,
                         .to_strides = to.strides,
                         .rows = to.height,
                         .columns = to.width,
                         .vertical = !down_first,
                         .table = (down_first ? across : down).table});
  plan.first.push_back(first);
}

}  // namespace

ResizePlan plan_resize(const ResizeTo& to, std::span<const ResizeWindow> windows) {
  check_sizes(to, windows);
  ResizePlan plan;
  plan.channels = to.channels;
  plan.second_rows = to.height;
  TableWriter writer(to.filter, plan.tables);
  for (size_t i = 0; i < windows.size(); ++i) {
    plan_window(to, windows[i], static_cast<int64_t>(i) * to.strides.picture, writer, plan);
  }
  return plan;
}

ResamplePass ResizePlan::first_pass(const ResampleJob* jobs, const int32_t* tables,
                                    const uint8_t* pictures, uint8_t* scratch) const {
  return {jobs,     tables,    pictures, scratch, static_cast<int64_t>(first.size()),
          channels, first_rows};
}

ResamplePass ResizePlan::second_pass(const ResampleJob* jobs, const int32_t* tables,
                                     const uint8_t* scratch, uint8_t* batch) const {
  return {jobs, tables, scratch, batch, static_cast<int64_t>(second.size()), channels, second_rows};
}

}  // namespace headrace
