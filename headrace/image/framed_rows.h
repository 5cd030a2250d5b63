// SPDX-License-Identifier: Apache-2.0
// Rows of a picture as rows of a larger one, whose border has one colour: what a resize of a padded
// picture reads. Neither is ever whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"

namespace headrace {

class FramedRows final : public RowSink {
 public:
  // `wanted`: the part of the larger picture whose rows `to` gets; `picture`: where the picture
  // lies on it, which need not be there. Borrows `to` until the last row.
  void begin(RowSink& to, const Window& wanted, const Window& picture, int channels,
             const std::array<uint8_t, kMostChannels>& fill);
  // The part of the picture whose rows must come, in its own coordinates; may be empty.
  Window needed() const { return needed_; }
  // RowBlock::y and x count from needed().
  void rows(const RowBlock& block) override;
  // Hands over the border below. REQUIRES: all rows have come.
  void finish();

  size_t held_bytes() const { return rows_.capacity(); }
  void free() { rows_.free(); }
  static size_t working_bytes(int channels, int width);

 private:
  void send(size_t which);
  void border_until(int y);

  RowSink* to_ = nullptr;
  Window needed_;
  int channels_ = 0, height_ = 0;
  int left_ = 0, top_ = 0;  // of what is wanted, to the picture's part
  int next_ = 0;            // rows that `to_` has got
  ptrdiff_t plane_ = 0;
  Buffer rows_;  // one of border, and one with a row of the picture in it
};

}  // namespace headrace
