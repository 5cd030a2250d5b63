// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/fused_pass.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "headrace/image/row_sinks.h"
#include "headrace/kernels/rows.h"

namespace headrace {
namespace {

constexpr int kVector = 64;  // bytes; rows are padded to it, so that vector loops need no tail

ptrdiff_t padded(int samples) { return (ptrdiff_t{samples} + kVector - 1) / kVector * kVector; }

// Room for a row of each channel, and for loads and stores that run over its end.
size_t row_bytes(int channels, ptrdiff_t plane) { return size_t(channels) * plane; }

// Fills everything outside the range. The value is mapped once, since small pictures have many
// border pixels.
template <class Element>
void fill_around(const PassJob& job) {
  const int top = stored_y(job), left = stored_x(job);
  const int bottom = top + job.range.height, right = left + job.range.width;
  const bool interleaved = job.format == MemoryFormat::kChannelsLast;
  const ptrdiff_t column = interleaved ? job.stored_channels : 1, row = column * job.canvas_width;
  for (int channel = 0; channel < job.stored_channels; ++channel) {
    Element value;
    store_value(job.map->value(job.fill[channel], channel), job.map->output(), &value);
    auto* to = static_cast<Element*>(job.data) +
               (interleaved ? channel : channel * row * job.canvas_height);
    const auto fill = [&](int begin, int end) {
      for (ptrdiff_t x = begin; x < end; ++x) to[x * column] = value;
    };
    for (int y = 0; y < job.canvas_height; ++y, to += row) {
      const bool shown = y >= top && y < bottom;
      fill(0, shown ? left : job.canvas_width);
      if (shown) fill(right, job.canvas_width);
    }
  }
}

}  // namespace

uint8_t* element_at(const PassJob& job, int channel, int row, int column) {
  const size_t pixel = size_t(row) * job.canvas_width + column;
  const size_t at = job.format == MemoryFormat::kChannelsLast
                        ? pixel * job.stored_channels + channel
                        : size_t(channel) * job.canvas_height * job.canvas_width + pixel;
  return static_cast<uint8_t*>(job.data) + at * size_of(job.map->output());
}

int stored_x(const PassJob& job) {
  return job.flip_x_after ? job.canvas_width - job.range_x - job.range.width : job.range_x;
}

int stored_y(const PassJob& job) {
  return job.flip_y_after ? job.canvas_height - job.range_y - job.range.height : job.range_y;
}

void store_fill(const PassJob& job) {
  if (!job.fills()) return;
  switch (size_of(job.map->output())) {
    case 1:
      return fill_around<uint8_t>(job);
    case 2:
      return fill_around<uint16_t>(job);
    default:
      return fill_around<float>(job);
  }
}

void FusedPass::begin(const PassJob& job) {
  job_ = job;
  make_axes();
  const bool both = !x_.copies() && !y_.copies();
  if (y_.copies()) {
    order_ = Order::kHorizontalOnly;
  } else if (both &&
             vertical_first(*job.filter, job.width, job.height, job.to_width, job.to_height)) {
    order_ = Order::kVerticalFirst;
  } else {
    order_ = Order::kHorizontalFirst;
  }
  place_buffers();
  next_ = 0;
  finished_count_ = 0;
}

void FusedPass::make_axes() {
  // Without a resize both axes are copies, regardless of the filter.
  const Filter filter = job_.filter.value_or(Filter::kNearest);
  const Window& range = job_.range;
  x_.make(filter, job_.width, job_.to_width, range.x, range.x + range.width, job_.flip_x_before,
          job_.flip_x_after);
  y_.make(filter, job_.height, job_.to_height, range.y, range.y + range.height, job_.flip_y_before,
          job_.flip_y_after);
}

void FusedPass::place_buffers() {
  const int channels = job_.channels, needed = x_.high() - x_.low();
  strip_plane_ = padded(job_.range.width);
  wide_plane_ = padded(needed);
  // A ring row holds outputs of the horizontal pass, or its inputs if that pass comes later.
  ring_plane_ = order_ == Order::kVerticalFirst ? wide_plane_ : strip_plane_;
  ring_stride_ = row_bytes(channels, ring_plane_);
  const size_t ring_rows =
      order_ == Order::kHorizontalOnly ? 0 : std::bit_ceil(unsigned(y_.max_count()));
  ring_mask_ = static_cast<int>(ring_rows) - 1;
  ring_.resize(ring_rows * ring_stride_);
  strip_.resize(kStrip * row_bytes(channels, strip_plane_));
  wide_.resize(row_bytes(channels, wide_plane_));
  if (job_.steps) {
    computed_.resize(row_bytes(PixelSteps::kScratchPlanes, strip_plane_));
  }
  if (order_ != Order::kHorizontalOnly) taps_.resize(y_.row_pointers());
}

Window FusedPass::needed() const {
  return {x_.low(), y_.low(), x_.high() - x_.low(), y_.high() - y_.low()};
}

void FusedPass::rows(const RowBlock& block) {
  start_clock(block.count);
  for (int row = 0; row < block.count; ++row) push(block.y + row, block, row);
  // Finished rows may point into the block, which ends here.
  if (finished_count_) store_finished();
  lap(resample_seconds_);
}

void FusedPass::push(int y, const RowBlock& block, int row) {
  switch (order_) {
    case Order::kHorizontalOnly: {
      const int output = y_.mirrored() ? y_.outputs() - 1 - y : y;
      if (x_.copies() && !x_.mirrored()) {
        uint8_t* const to = block.step == 1 ? nullptr : strip_row();
        finished_[finished_count_++] = {planar(block, row, to, strip_plane_), output};
        if (finished_count_ == kStrip) store_finished();
      } else {
        uint8_t* const to = strip_row();
        horizontal(planar(block, row, wide_.data(), wide_plane_), to, strip_plane_);
        finish_row(to, strip_plane_, output);
      }
      return;
    }
    case Order::kHorizontalFirst: {
      uint8_t* const to = ring_row(y);
      if (x_.copies() && !x_.mirrored()) {
        copy_row(block, row, to, ring_plane_);
      } else {
        horizontal(planar(block, row, wide_.data(), wide_plane_), to, ring_plane_);
      }
      return emit_ready(y);
    }
    case Order::kVerticalFirst:
      copy_row(block, row, ring_row(y), ring_plane_);
      return emit_ready(y);
  }
}

std::array<const uint8_t*, kMaxChannels> FusedPass::planar(const RowBlock& block, int row,
                                                           uint8_t* to, ptrdiff_t plane) const {
  std::array<const uint8_t*, kMaxChannels> in{};
  if (block.step == 1) {
    for (int c = 0; c < job_.channels; ++c) in[c] = block.channel[c] + row * block.stride;
    return in;
  }
  copy_row(block, row, to, plane);
  for (int c = 0; c < job_.channels; ++c) in[c] = to + c * plane;
  return in;
}

void FusedPass::copy_row(const RowBlock& block, int row, uint8_t* to, ptrdiff_t plane) const {
  std::array<uint8_t*, kMaxChannels> out;
  for (int c = 0; c < job_.channels; ++c) out[c] = to + c * plane;
  copy_planar_row(block, row, job_.channels, x_.high() - x_.low(), out.data());
}

void FusedPass::horizontal(const std::array<const uint8_t*, kMaxChannels>& in, uint8_t* to,
                           ptrdiff_t plane) const {
  if (!x_.copies()) {
    constexpr int kAtOnce = 4;
    for (int c = 0; c < job_.channels; c += kAtOnce) {
      x_.horizontal(in.data() + c, std::min(job_.channels - c, kAtOnce), to + c * plane, plane);
    }
    return;
  }
  for (int c = 0; c < job_.channels; ++c) {
    if (x_.mirrored()) {
      mirror_row(in[c], x_.outputs(), to + c * plane);
    } else {
      std::memcpy(to + c * plane, in[c], x_.outputs());
    }
  }
}

// Stores the outputs whose last input row is y.
void FusedPass::emit_ready(int y) {
  for (; next_ < y_.outputs(); ++next_) {
    const int output = y_.descending() ? y_.outputs() - 1 - next_ : next_;
    if (y_.first(output) + y_.count(output) - 1 > y) return;
    emit_vertical(output);
  }
}

void FusedPass::emit_vertical(int output) {
  const int first = y_.first(output), count = y_.count(output);
  uint8_t* const to = strip_row();
  const bool horizontal_next = order_ == Order::kVerticalFirst;
  const uint8_t* result = to;
  if (y_.is_copy(output)) {
    // A ring row may be overwritten before the strip is stored, so it cannot be passed on.
    result = ring_row(first);
    if (!horizontal_next) std::memcpy(to, result, ring_stride_);
  } else {
    for (int t = 0; t < static_cast<int>(taps_.size()); ++t) {
      taps_[t] = ring_row(first + std::min(t, count - 1));
    }
    uint8_t* const out = horizontal_next ? wide_.data() : to;
    y_.vertical(output, taps_.data(), static_cast<int>(ring_stride_), out);
    result = out;
  }
  if (horizontal_next) {
    std::array<const uint8_t*, kMaxChannels> in{};
    for (int c = 0; c < job_.channels; ++c) in[c] = result + c * wide_plane_;
    horizontal(in, to, strip_plane_);
  }
  finish_row(to, strip_plane_, output);
}

uint8_t* FusedPass::strip_row() {
  return strip_.data() + finished_count_ * row_bytes(job_.channels, strip_plane_);
}

void FusedPass::finish_row(const uint8_t* planes, ptrdiff_t plane, int output) {
  Finished& finished = finished_[finished_count_++];
  for (int c = 0; c < job_.channels; ++c) finished.plane[c] = planes + c * plane;
  finished.output = output;
  if (finished_count_ == kStrip) store_finished();
}

// A finished row after the pixel steps: it is stored while it is in the cache.
PixelSteps::Planes FusedPass::computed(const PixelSteps::Planes& row) {
  return job_.steps->run(row, job_.channels, job_.range.width, computed_.data(), strip_plane_);
}

void FusedPass::store_finished() {
  lap(resample_seconds_);
  // If rows are computed too, the strip's first row determines how its time is divided: reading the
  // clock twice per row would cost as much as a table.
  double computing = 0, storing = 0;
  const bool computes = job_.steps != nullptr;
  const int x = stored_x(job_), y = stored_y(job_), width = job_.range.width;
  const int channels = job_.stored_channels;
  std::array<const StoreTable*, kMaxChannels> tables{};
  for (int c = 0; c < channels; ++c) tables[c] = &job_.map->table(c);
  const size_t plane = size_t(job_.canvas_height) * job_.canvas_width * size_of(job_.map->output());
  for (int i = 0; i < finished_count_; ++i) {
    const PixelSteps::Planes row = computes ? computed(finished_[i].plane) : finished_[i].plane;
    if (computes && i == 0) lap(computing);
    uint8_t* const to = element_at(job_, 0, y + finished_[i].output, x);
    if (job_.format == MemoryFormat::kChannelsLast) {
      store_row_interleaved(tables.data(), row.data(), channels, width, to, job_.stream);
    } else {
      for (int c = 0; c < channels; ++c) {
        store_row(*tables[c], row[c], width, to + c * plane, job_.stream);
      }
    }
    if (computes && i == 0) lap(storing);
  }
  finished_count_ = 0;
  double rest = 0;
  lap(rest);
  const double share = computing > 0 ? computing / (computing + storing) : 0;
  pixel_seconds_ += computing + rest * share;
  store_seconds_ += storing + rest * (1 - share);
}

// Reading the clock costs as much as a small row, so one block per this many rows is measured, and
// represents the others.
void FusedPass::start_clock(int rows) {
  constexpr int kRows =
      53;  // not a multiple of typical blocks, which would always sample the same rows
  untimed_rows_ += rows;
  time_weight_ = 0;
  if (untimed_rows_ < kRows) return;
  time_weight_ = static_cast<double>(untimed_rows_) / rows;
  untimed_rows_ = 0;
  lap_start_ = Clock::now();
}

void FusedPass::lap(double& seconds) {
  if (time_weight_ == 0) return;
  const Clock::time_point now = Clock::now();
  seconds += time_weight_ * std::chrono::duration<double>(now - lap_start_).count();
  lap_start_ = now;
}

size_t FusedPass::held_bytes() const {
  return ring_.capacity() + strip_.capacity() + wide_.capacity() + computed_.capacity() +
         x_.held_bytes() + y_.held_bytes();
}

void FusedPass::free() {
  ring_.free();
  strip_.free();
  wide_.free();
  computed_.free();
  x_ = {};
  y_ = {};
}

size_t FusedPass::working_bytes(const PassJob& job) {
  const auto taps = [&](int input, int output) {
    const double scale = std::max(1.0, double(input) / std::max(output, 1));
    const int widest = job.filter == Filter::kLanczos ? 6 : 4;
    return static_cast<size_t>(widest * scale) + 5;
  };
  const size_t widest = padded(std::max(job.width, job.range.width)) * job.channels;
  const size_t rows =
      kStrip + 1 + (job.filter ? std::bit_ceil(taps(job.height, job.to_height)) : 0);
  // Weights as int32, their digits, and the horizontal kernel's own form: 16 bytes per tap.
  size_t tables = 0;
  if (job.filter) {
    tables += 16 * taps(job.width, job.to_width) * (job.range.width + 16);
    tables += 16 * taps(job.height, job.to_height) * (job.range.height + 16);
  }
  const size_t computed = !job.steps ? 0 : PixelSteps::kScratchPlanes * padded(job.range.width);
  return rows * widest + tables + computed;
}

}  // namespace headrace
