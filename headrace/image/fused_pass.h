// SPDX-License-Identifier: Apache-2.0
// 8-bit rows -> resample -> pixel steps -> pixel map -> store, in one pass: the hot path after
// every decoder.
//
// Rows arrive as a decoder produces them, from top to bottom. A ring buffer holds only the few rows
// that the vertical pass still needs, so that they stay in the L1 cache. Owned by a Renderer; for
// one thread.
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

// Operations on a window of pixels, in this order; see Recipe. All sizes are after the transpose.
struct PassJob {
  int channels = 0;           // of the window
  int width = 0, height = 0;  // of the window, or of the frame that is resized with it
  bool flip_x_before = false, flip_y_before = false;
  std::optional<Filter> filter;             // of the resize, if there is one
  int to_width = 0, to_height = 0;          // after the resize
  Window range;                             // the visible part of the resized picture; may be empty
  int canvas_width = 0, canvas_height = 0;  // size of the stored image
  int range_x = 0, range_y = 0;             // position of the range on the canvas
  ChannelValues fill{};  // color outside the range, by stored channel, after the pixel steps
  bool flip_x_after = false, flip_y_after = false;  // of the canvas
  const PixelSteps* steps = nullptr;                // steps of the recipe; null: none
  int stored_channels = 0;                          // after the steps
  const PixelMap* map = nullptr;
  void* data = nullptr;
  MemoryFormat format = MemoryFormat::kChannelsFirst;
  // Uses non-temporal stores (store.h); the caller must then call finish_streaming().
  bool stream = false;

  bool fills() const { return range.width < canvas_width || range.height < canvas_height; }
};

// Fills the canvas outside the range with the mapped fill. job.fill has values before the map.
void store_fill(const PassJob& job);
// Address of element (channel, row, column) of the canvas.
uint8_t* element_at(const PassJob& job, int channel, int row, int column);
// Column and row of the canvas where the range begins, after the flips.
int stored_x(const PassJob& job);
int stored_y(const PassJob& job);

class FusedPass final : public RowSink {
 public:
  // REQUIRES: the map's input is uint8, and the range is not empty.
  void begin(const PassJob& job);
  // The part of the window whose rows must be passed to rows(); RowBlock::y and x count from its
  // corner.
  Window needed() const;
  void rows(const RowBlock& block) override;

  // Seconds spent since the last call, estimated by timing only some of the blocks.
  double take_pixel_seconds() { return std::exchange(pixel_seconds_, 0.0); }
  double take_resample_seconds() { return std::exchange(resample_seconds_, 0.0); }
  double take_store_seconds() { return std::exchange(store_seconds_, 0.0); }

  size_t held_bytes() const;
  void free();
  // Upper bound on what begin() allocates, for the memory budget.
  static size_t working_bytes(const PassJob& job);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Order : uint8_t { kHorizontalOnly, kHorizontalFirst, kVerticalFirst };
  static constexpr int kStrip = 16;  // number of finished rows that are stored together

  // A finished row of 8-bit samples, and its output position.
  struct Finished {
    PixelSteps::Planes plane;
    int output = 0;  // row within the range, from the top, after the flips
  };

  void make_axes();
  void place_buffers();
  void push(int y, const RowBlock& block, int row);
  void emit_ready(int y);
  void emit_vertical(int output);
  // The row's planes; deinterleaves them to `to` if they are not planar.
  std::array<const uint8_t*, kMaxChannels> planar(const RowBlock& block, int row, uint8_t* to,
                                                  ptrdiff_t plane) const;
  void copy_row(const RowBlock& block, int row, uint8_t* to, ptrdiff_t plane) const;
  void horizontal(const std::array<const uint8_t*, kMaxChannels>& in, uint8_t* to,
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
  int ring_mask_ = 0;       // number of rows of the ring (a power of two) minus one
  size_t ring_stride_ = 0;  // bytes of a ring row: channels * ring_plane_
  ptrdiff_t ring_plane_ = 0, strip_plane_ = 0, wide_plane_ = 0;
  int next_ = 0;  // number of finished outputs of the vertical axis, in the order of their inputs
  std::array<Finished, kStrip> finished_;
  int finished_count_ = 0;
  double resample_seconds_ = 0, pixel_seconds_ = 0, store_seconds_ = 0;
  Clock::time_point lap_start_;
  int untimed_rows_ = 0;
  double time_weight_ = 0;  // factor from measured to estimated seconds; 0: not measured
};

}  // namespace headrace
