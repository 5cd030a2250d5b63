// SPDX-License-Identifier: Apache-2.0
// Adapters between a decoder's rows and a pass that needs another form: each takes rows, and passes
// them on. For one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"
#include "headrace/image/picture.h"

namespace headrace {

// Copies `count` samples of row `row` of the block, whatever its layout: channel c goes to out[c].
// May write up to 63 bytes past each plane's row.
void copy_planar_row(const RowBlock& block, int row, int channels, int count, uint8_t* const out[]);

// Rows of one decoded window for several sinks that need parts of it: views of a picture that share
// its decode. Each gets the same rows as from a separate decode. Used by one thread.
class SharedRows final : public RowSink {
 public:
  // For the rows of `window`, with no sinks yet.
  void begin(const Window& window);
  // REQUIRES: `part` lies inside the window, in the same coordinates; the sink outlives the decode.
  void add(RowSink& sink, const Window& part);
  void rows(const RowBlock& block) override;

 private:
  struct Part {
    RowSink* sink;
    Window part;
  };
  Window window_;
  std::vector<Part> parts_;
};

// Rows of three colors -> rows with an alpha channel of 255, for codecs without alpha.
class OpaqueRows final : public RowSink {
 public:
  void begin(RowSink& to) { to_ = &to; }
  void rows(const RowBlock& block) override;

  size_t held_bytes() const { return opaque_.capacity(); }
  void free() { opaque_.free(); }

 private:
  RowSink* to_ = nullptr;
  Buffer opaque_;  // laid out as a block's channels are
};

// Rows of a picture as rows of a larger one, whose border has one color: what a resize of a padded
// picture reads. Neither is ever whole.
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
  // Passes on the border below. REQUIRES: all rows have arrived.
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

// Keeps the rows of a window, to hand them over transposed: what EXIF orientations 5 to 8 need.
class WindowBuffer final : public RowSink {
 public:
  // For the rows of a width x height window.
  void begin(int channels, int width, int height);
  void rows(const RowBlock& block) override;
  // The window transposed, height x width: all rows as one block, valid until begin().
  RowBlock transposed();

  size_t held_bytes() const { return kept_.capacity() + transposed_.capacity(); }
  void free();
  static size_t working_bytes(int channels, int width, int height);

 private:
  int channels_ = 0, width_ = 0, height_ = 0;
  ptrdiff_t stride_ = 0, transposed_stride_ = 0;
  Buffer kept_, transposed_;
};

// Keeps the rows of a window whose samples do not fit in a byte: WidePass works on whole planes.
class WideRows final : public RowSink {
 public:
  // For the rows of a width x height window.
  void begin(int channels, int width, int height, DType dtype);
  void rows(const RowBlock& block) override;
  // REQUIRES: all rows came. Valid until begin().
  const Picture& picture() const { return picture_; }

  size_t held_bytes() const { return picture_.pixels.capacity(); }
  void free() { picture_.pixels.free(); }

 private:
  Picture picture_;
};

}  // namespace headrace
