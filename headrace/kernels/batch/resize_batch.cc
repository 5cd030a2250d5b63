// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/resize_batch.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <tuple>

#include "headrace/base/error.h"
#include "headrace/kernels/batch/memory_sections.h"
#include "headrace/kernels/batch/queue.h"
#include "headrace/kernels/resample/resample.h"

namespace headrace {
namespace {

const ErrorCode kBadSize{
    "HR0863", ErrorKind::kConfig, "invalid batch resize",
    "A batch is resized from windows of at least one pixel to a size from 1 to 65,536 pixels per "
    "side, and all its images have the same number of channels, from one to four."};

std::string text_of(int32_t height, int32_t width) {
  return std::to_string(height) + " x " + std::to_string(width);
}

bool is_too_large(int32_t height, int32_t width) {
  return height > kMaxResizedSide || width > kMaxResizedSide;
}

bool lies_in(int32_t begin, int32_t count, int32_t whole) {
  return count >= 1 && begin >= 0 && count <= whole && begin <= whole - count;
}

// The window with default sizes filled in and checked.
ResizeWindow checked(const ResizeTo& to, ResizeWindow window, size_t number) {
  if (window.border_alone) return window;
  const std::string name = "window " + std::to_string(number);
  if (window.height < 1 || window.width < 1) {
    raise(kBadSize, name + " is empty (" + text_of(window.height, window.width) + ")");
  }
  if (window.shown_height == 0) window.shown_height = to.height;
  if (window.shown_width == 0) window.shown_width = to.width;
  if (window.to_height == 0) window.to_height = window.shown_height;
  if (window.to_width == 0) window.to_width = window.shown_width;
  if (!lies_in(window.at_top, window.shown_height, to.height) ||
      !lies_in(window.at_left, window.shown_width, to.width)) {
    raise(kBadSize, name + " cannot be placed as " +
                        text_of(window.shown_height, window.shown_width) + " from " +
                        text_of(window.at_top, window.at_left) + " in an image of " +
                        text_of(to.height, to.width));
  }
  if (is_too_large(window.height, window.width) ||
      is_too_large(window.to_height, window.to_width)) {
    raise(kBadSize, name + " is too large (" + text_of(window.height, window.width) + " to " +
                        text_of(window.to_height, window.to_width) + ")");
  }
  if (!lies_in(window.top, window.shown_height, window.to_height) ||
      !lies_in(window.left, window.shown_width, window.to_width)) {
    raise(kBadSize, "the result of " + name + " is " + text_of(window.to_height, window.to_width) +
                        ", " + text_of(window.shown_height, window.shown_width) + " from " +
                        text_of(window.top, window.left) + " is outside it");
  }
  return window;
}

void check(const ResizeTo& to) {
  if (to.height < 1 || to.width < 1 || is_too_large(to.height, to.width)) {
    raise(kBadSize, "a batch cannot be resized to " + text_of(to.height, to.width));
  }
  if (to.channels < 1 || to.channels > 4) {
    raise(kBadSize, "an image has 1 to 4 channels (got " + std::to_string(to.channels) + ")");
  }
}

int32_t up_to(int32_t multiple, int32_t number) {
  return (number + multiple - 1) / multiple * multiple;
}

// One axis of a window.
struct AxisSizes {
  int32_t input, full, begin, count;
  bool mirrored, reversed;
  AxisForm form;
  auto operator<=>(const AxisSizes&) const = default;
};

class PlanWriter {
 public:
  PlanWriter(const ResizeTo& to, ResizePlan& plan) : to_(to), plan_(plan) {
    plan_.channels = to.channels;
  }

  void add(ResizeWindow window, int64_t batch_offset) {
    if (window.border_alone) return add_border(window, batch_offset);
    mirrored_ = window.strides.column == -1;
    if (mirrored_) {  // read from the other end
      window.from -= window.width - 1;
      window.strides.column = 1;
    }
    if (window.shown_height < to_.height || window.shown_width < to_.width) {
      add_border(window, batch_offset);
      batch_offset += window.at_top * to_.strides.row + window.at_left * to_.strides.column;
    }
    if (vertical_first(to_.filter, window.width, window.height, window.to_width,
                       window.to_height)) {
      columns_first(window, batch_offset);
    } else {
      rows_first(window, batch_offset);
    }
  }

 private:
  uint32_t axis(const AxisSizes& sizes) {
    const auto [known, is_new] = axes_.try_emplace(sizes, uint32_t(plan_.axes.size()));
    if (!is_new) return known->second;
    ResizeAxis axis{.begin = sizes.begin,
                    .count = sizes.count,
                    .mirrored = sizes.mirrored,
                    .reversed = sizes.reversed,
                    .padded = up_to(4, sizes.count),
                    .form = sizes.form};
    if (is_polynomial(to_.filter)) {
      // Box has one tap if nothing is resized; the other filters include neighbors with zero
      // weight.
      const Filter filter = sizes.input == sizes.full ? Filter::kBox : to_.filter;
      axis.scale = FilterScale(filter, sizes.input, sizes.full);
      measure(axis);
    } else {
      make(sizes, axis);
    }
    axis.table = plan_.table_words;
    plan_.table_words += axis.words();
    plan_.max_outputs = std::max(plan_.max_outputs, up_to(32, axis.padded));
    plan_.axes.push_back(axis);
    return known->second;
  }
  uint32_t across(const ResizeWindow& window) {
    return axis({window.width, window.to_width, window.left, window.shown_width, mirrored_,
                 window.flip, AxisForm::kAlongRows});
  }
  uint32_t down(const ResizeWindow& window) {
    return axis({window.height, window.to_height, window.top, window.shown_height, false,
                 window.upside_down, AxisForm::kAcrossRows});
  }

  // The inputs of an axis; first and first + count increase with the outputs.
  static void measure(ResizeAxis& axis) {
    const FilterSpan lowest = axis.scale.antialiased_span(axis.begin);
    const FilterSpan highest = axis.scale.antialiased_span(axis.begin + axis.count - 1);
    const int32_t end = highest.first + highest.count;
    axis.low = axis.mirrored ? axis.scale.input - end : lowest.first;
    axis.samples = end - lowest.first;
    for (int32_t i = 0; i < axis.count; ++i) {
      axis.taps = std::max(axis.taps, axis.scale.antialiased_span(axis.begin + i).count);
    }
  }

  void make(const AxisSizes& sizes, ResizeAxis& axis) {
    made_.make(to_.filter, sizes.input, sizes.full, sizes.begin, sizes.begin + sizes.count,
               sizes.mirrored, sizes.reversed);
    axis.low = made_.low();
    axis.samples = made_.high() - made_.low();
    axis.taps = made_.max_count();
    axis.made = int64_t(plan_.made.size());
    const auto each = [&](auto&& number) {
      for (int32_t i = 0; i < sizes.count; ++i) plan_.made.push_back(number(i));
    };
    if (made_.copies()) {  // weights that reproduce the sample
      each([&](int32_t i) { return made_.mirrored() ? sizes.count - 1 - i : i; });
      each([](int32_t) { return 1; });
      each([](int32_t) { return 1 << 22; });
      return;
    }
    each([&](int32_t i) { return made_.first(i); });
    each([&](int32_t i) { return made_.count(i); });
    for (int32_t tap = 0; tap < axis.taps; ++tap) {
      each([&](int32_t i) { return tap < made_.count(i) ? made_.weight(i, tap) : 0; });
    }
  }

  // Rows of `columns` samples and their pictures, both starting at multiples of 8 bytes.
  static PictureStrides strides_between(int32_t rows, int32_t columns) {
    const int64_t row = up_to(8, columns);
    return {.picture = 0, .row = row, .column = 1, .channel = row * rows};
  }

  void rows_first(const ResizeWindow& window, int64_t batch_offset) {
    const uint32_t along = across(window), other = down(window);
    const ResizeAxis &wide = plan_.axes[along], &high = plan_.axes[other];
    ResampleJob first{
        .from = window.from + high.low * window.strides.row + wide.low * window.strides.column,
        .to = plan_.between_bytes,
        .from_strides = window.strides,
        .to_strides = strides_between(high.samples, window.shown_width),
        .rows = high.samples,
        .columns = window.shown_width,
        .samples = wide.samples,
        .axis = along,
        .in_words = up_to(8, window.shown_width)};
    put(plan_.first.rows, layout_of(window.strides), first);
    const ResampleJob second = to_batch(window, first, batch_offset, other, high.samples);
    put(plan_.second.columns, across_rows(SampleLayout::kWords, high), second);
    plan_.between_bytes += first.to_strides.channel * to_.channels;
  }

  void columns_first(const ResizeWindow& window, int64_t batch_offset) {
    const uint32_t along = across(window), other = down(window);
    const ResizeAxis &wide = plan_.axes[along], &high = plan_.axes[other];
    const int64_t from =
        window.from + high.low * window.strides.row + wide.low * window.strides.column;
    const SampleLayout layout = across_rows(layout_of(window.strides), high);
    // Aligns the start to 8 bytes by including up to 7 extra columns, which are not used.
    const int32_t before = layout == SampleLayout::kWords ? int32_t(from & 7) : 0;
    ResampleJob first{.from = from - before,
                      .to = plan_.between_bytes,
                      .from_strides = window.strides,
                      .to_strides = strides_between(window.shown_height, before + wide.samples),
                      .rows = window.shown_height,
                      .columns = before + wide.samples,
                      .samples = high.samples,
                      .axis = other,
                      .in_words = up_to(8, before + wide.samples)};
    put(plan_.first.columns, layout, first);
    ResampleJob second = to_batch(window, first, batch_offset, along, wide.samples);
    second.from += before;
    put(plan_.second.rows, SampleLayout::kWords, second);
    plan_.between_bytes += first.to_strides.channel * to_.channels;
  }

  bool in_words(int64_t batch_offset) const {
    return layout_of(to_.strides) == SampleLayout::kWords && batch_offset % 8 == 0;
  }

  ResampleJob to_batch(const ResizeWindow& window, const ResampleJob& first, int64_t batch_offset,
                       uint32_t axis, int32_t samples) const {
    return {.from = first.to,
            .to = batch_offset,
            .from_strides = first.to_strides,
            .to_strides = to_.strides,
            .rows = window.shown_height,
            .columns = window.shown_width,
            .samples = samples,
            .axis = axis,
            .in_words = in_words(batch_offset) ? window.shown_width : 0};
  }

  void add_border(const ResizeWindow& window, int64_t batch_offset) {
    ResampleJob job{.to = batch_offset,
                    .to_strides = to_.strides,
                    .rows = to_.height,
                    .columns = to_.width,
                    .in_words = in_words(batch_offset) ? to_.width : 0};
    for (size_t c = 0; c < window.fill.size(); ++c) job.fill |= uint32_t{window.fill[c]} << 8 * c;
    put(plan_.borders, FillBorders::threads(job), job);
  }

  static SampleLayout layout_of(const PictureStrides& strides) {
    const bool words = strides.column == 1 && strides.row % 8 == 0 && strides.channel % 8 == 0;
    return words ? SampleLayout::kWords : SampleLayout::kAny;
  }
  // Two rows are read at a time; no extra row is available if the output needs all rows.
  static SampleLayout across_rows(SampleLayout layout, const ResizeAxis& axis) {
    return axis.taps == axis.samples && axis.samples % 2 ? SampleLayout::kAny : layout;
  }

  void put(std::array<std::vector<ResamplePiece>, 2>& pieces, SampleLayout layout,
           const ResampleJob& job) {
    const bool along = plan_.axes[job.axis].form == AxisForm::kAlongRows;
    put(pieces[size_t(layout)],
        along ? ResampleRows<SampleLayout::kAny>::threads(job)
              : ResampleColumns<SampleLayout::kAny>::threads(job),
        job);
  }
  void put(std::vector<ResamplePiece>& pieces, int64_t threads, const ResampleJob& job) {
    const uint32_t number = uint32_t(plan_.jobs.size());
    for (int64_t i = 0; i < threads; i += kResamplePiece) pieces.push_back({number, uint32_t(i)});
    plan_.jobs.push_back(job);
  }

  const ResizeTo& to_;
  ResizePlan& plan_;
  bool mirrored_ = false;  // the window that is added
  std::map<AxisSizes, uint32_t> axes_;
  ResampleAxis made_;
};

// Pieces in the order of ResizeSections.
std::array<const std::vector<ResamplePiece>*, 9> all_pieces(const ResizePlan& plan) {
  std::array<const std::vector<ResamplePiece>*, 9> all{};
  size_t next = 0;
  for (const ResamplePieces* const pass : {&plan.first, &plan.second}) {
    for (const auto* const direction : {&pass->rows, &pass->columns}) {
      for (const auto& pieces : *direction) all[next++] = &pieces;
    }
  }
  all[next] = &plan.borders;
  return all;
}

template <class T>
int64_t bytes_of(const std::vector<T>& values) {
  return int64_t(values.size() * sizeof(T));
}

void take_upload(MemorySections& from, const ResizePlan& plan, ResizeSections& sections) {
  from.take(sections.axes, bytes_of(plan.axes));
  from.take(sections.made, bytes_of(plan.made));
  from.take(sections.jobs, bytes_of(plan.jobs));
  const auto pieces = all_pieces(plan);
  for (size_t i = 0; i < pieces.size(); ++i) from.take(sections.pieces[i], bytes_of(*pieces[i]));
}

void take_scratch(MemorySections& from, const ResizePlan& plan, ResizeSections& sections) {
  from.take(sections.tables, plan.table_words * int64_t{sizeof(uint32_t)});
  from.take(sections.between, plan.between_bytes);
}

}  // namespace

ResizePlan plan_resize(const ResizeTo& to, std::span<const ResizeWindow> windows) {
  check(to);
  ResizePlan plan;
  PlanWriter writer(to, plan);
  for (size_t i = 0; i < windows.size(); ++i) {
    writer.add(checked(to, windows[i], i), int64_t(i) * to.strides.picture);
  }
  return plan;
}

// An axis' first inputs, counts, and weights.
int64_t made_bytes(const ResizeTo& to, const ResizeWindow& window) {
  if (is_polynomial(to.filter) || window.border_alone) return 0;
  const auto of_axis = [&](int32_t input, int32_t full, int32_t count) {
    int64_t taps = is_nearest(to.filter) ? 1 : 4;
    if (!is_nearest(to.filter) && !is_without_antialias(to.filter)) {
      taps = 2 * static_cast<int64_t>(FilterScale(to.filter, input, full).support) + 3;
    }
    return count * (2 + taps) * int64_t{sizeof(int32_t)};
  };
  return of_axis(window.width, window.to_width, window.shown_width) +
         of_axis(window.height, window.to_height, window.shown_height);
}

int64_t upload_bytes(const ResizePlan& plan) {
  MemorySections counted(nullptr);
  ResizeSections nowhere;
  take_upload(counted, plan, nowhere);
  return counted.bytes();
}

int64_t scratch_bytes(const ResizePlan& plan) {
  MemorySections counted(nullptr);
  ResizeSections nowhere;
  take_scratch(counted, plan, nowhere);
  return counted.bytes();
}

ResizeSections sections_of(const ResizePlan& plan, const ResizeMemory& at) {
  // Uploaded memory is only read.
  MemorySections upload(const_cast<uint8_t*>(at.upload)), scratch(at.scratch);
  ResizeSections sections;
  take_upload(upload, plan, sections);
  take_scratch(scratch, plan, sections);
  return sections;
}

void write(const ResizePlan& plan, uint8_t* upload) {
  const ResizeSections to = sections_of(plan, {.upload = upload});
  const auto put = [&](const auto* there, const auto& values) {
    const auto offset = reinterpret_cast<const uint8_t*>(there) - upload;
    if (!values.empty()) std::memcpy(upload + offset, values.data(), size_t(bytes_of(values)));
  };
  put(to.axes, plan.axes);
  put(to.made, plan.made);
  put(to.jobs, plan.jobs);
  const auto pieces = all_pieces(plan);
  for (size_t i = 0; i < pieces.size(); ++i) put(to.pieces[i], *pieces[i]);
}

void queue_resize(Stream& stream, const ResizePlan& plan, const ResizeMemory& at) {
  for_each_kernel(plan, at, [&](const auto& kernel) { queue(stream, kernel); });
}

}  // namespace headrace
