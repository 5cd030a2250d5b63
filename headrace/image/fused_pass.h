// SPDX-License-Identifier: Apache-2.0
// 8-bit rows -> resample -> pixel steps -> pixel map -> store, in one pass: the hot path behind
// every decoder.
//
// Rows arrive as a decoder produces them, from top to bottom. A ring holds the few rows that the
// vertical pass still needs, so nothing of the picture's size is kept, and what is kept stays in
// the first-level cache. Owned by a Renderer; used by one thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"
#include "headrace/image/picture.h"
#include "headrace/image/pixel_map.h"
#include "headrace/image/pixel_steps.h"
#include "headrace/kernels/resample/filter.h"
#include "headrace/kernels/resample/resample.h"

namespace headrace {

enum class MemoryFormat : uint8_t { kChannelsFirst, kChannelsLast };

// Operations on a window of pixels, in this order; see Recipe. Sizes are those after a transpose.
struct PassJob {
  int channels = 0;           // of the window
  int width = 0, height = 0;  // of the window, or of the frame around it
  bool flip_x_before = false, flip_y_before = false;
  std::optional<Filter> filter;             // of the resize, where there is one
  int to_width = 0, to_height = 0;          // after it
  Window range;                             // of the resized picture; may be empty
  int canvas_width = 0, canvas_height = 0;  // size of the stored image
  int range_x = 0, range_y = 0;             // where the range lies on the canvas
  ChannelValues fill{};                     // of the rest, by stored channel, as the steps leave it
  bool flip_x_after = false, flip_y_after = false;  // of the canvas
  const PixelSteps* steps = nullptr;                // the recipe's; null: none
  int stored_channels = 0;                          // after the steps
  const PixelMap* map = nullptr;
  void* data = nullptr;
  MemoryFormat format = MemoryFormat::kChannelsFirst;
  bool stream = false;  // past the caches (store.h); the caller then calls finish_streaming()

  bool fills() const { return range.width < canvas_width || range.height < canvas_height; }
};

// Fills everything outside the range with the mapped fill; `fill` is a value of the map's input.
void store_fill(const PassJob& job);
// Where element (channel, row, column) of the canvas is stored.
uint8_t* element_at(const PassJob& job, int channel, int row, int column);
// Columns and rows of the canvas where the range begins, after the flips.
int stored_x(const PassJob& job);
int stored_y(const PassJob& job);

class FusedPass final : public RowSink {
 public:
  // REQUIRES: the map's input is uint8, and the range is not empty.
  void begin(const PassJob& job);
  // The part of the window whose rows must come; RowBlock::y and x count from it.
  Window needed() const;
  void rows(const RowBlock& block) override;

  // Seconds spent since they were last taken, estimated from a sample of the blocks.
  double take_pixel_seconds() { return std::exchange(pixel_seconds_, 0.0); }
  double take_resample_seconds() { return std::exchange(resample_seconds_, 0.0); }
  double take_store_seconds() { return std::exchange(store_seconds_, 0.0); }

  size_t held_bytes() const;
  void free();
  // Upper bound of what begin() will allocate, for the memory budget.
  static size_t working_bytes(const PassJob& job);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Order : uint8_t { kHorizontalOnly, kHorizontalFirst, kVerticalFirst };
  static constexpr int kStrip = 16;  // finished rows that are stored together

  // A finished row of 8-bit samples, and where it goes.
  struct Finished {
    PixelSteps::Planes plane;
    int output = 0;  // row of the range, from its top after the flips
  };

  void make_axes();
  void place_buffers();
  void push(int y, const RowBlock& block, int row);
  void emit_ready(int y);
  void emit_vertical(int output);
  // The row's planes, deinterleaved into `to` where they are not planar already.
  std::array<const uint8_t*, kMostChannels> planar(const RowBlock& block, int row, uint8_t* to,
                                                   ptrdiff_t plane) const;
  void copy_row(const RowBlock& block, int row, uint8_t* to, ptrdiff_t plane) const;
  void horizontal(const std::array<const uint8_t*, kMostChannels>& in, uint8_t* to,
                  ptrdiff_t plane) const;
  uint8_t* strip_row();
  void finish_row(const uint8_t* planes, ptrdiff_t plane, int output);
  PixelSteps::Planes computed(const PixelSteps::Planes& row);
  void store_finished();

  uint8_t* ring_row(int y) { return ring_.data() + size_t(y & ring_mask_) * ring_stride_; }
  void start_clock(int rows);
  void lap(double& seconds);

  PassJob job_;
  ResampleAxis x_, y_;
  Order order_ = Order::kHorizontalOnly;
  Buffer ring_, strip_, wide_;
  Buffer computed_;  // a row after the pixel steps
  std::vector<const uint8_t*> taps_;
  int ring_mask_ = 0;       // rows of the ring, a power of two, less one
  size_t ring_stride_ = 0;  // bytes of a ring row: channels * ring_plane_
  ptrdiff_t ring_plane_ = 0, strip_plane_ = 0, wide_plane_ = 0;
  int next_ = 0;  // outputs of the vertical axis that are done, in order of their inputs
  std::array<Finished, kStrip> finished_;
  int finished_count_ = 0;
  double resample_seconds_ = 0, pixel_seconds_ = 0, store_seconds_ = 0;
  Clock::time_point lap_start_;
  int untimed_rows_ = 0;
  double time_weight_ = 0;  // how many seconds one measured second stands for; 0: not measured
};

}  // namespace headrace
