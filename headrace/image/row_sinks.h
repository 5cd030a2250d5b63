// SPDX-License-Identifier: Apache-2.0
// Adapters that receive a decoder's rows, convert them to the form that a pass needs, and forward
// them. For one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"
#include "headrace/image/picture.h"

namespace headrace {

// Copies `count` samples of row `row` of the block, regardless of its layout: channel c goes to
// out[c]. May write up to 63 bytes past each plane's row.
void copy_planar_row(const RowBlock& block, int row, int channels, int count, uint8_t* const out[]);

// Distributes the rows of one decoded window to several sinks that need parts of it: views of a
// picture that share its decode. Each gets the same rows as from a separate decode.
class SharedRows final : public RowSink {
 public:
  // Starts a window of rows, without sinks.
  void begin(const Window& window);
  // Adds a sink. REQUIRES: `part` is inside the window, in the same coordinates; the sink outlives
  // the decode.
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

// Adds an alpha channel of 255 to RGB rows, for codecs without alpha.
class OpaqueRows final : public RowSink {
 public:
  void begin(RowSink& to) { to_ = &to; }
  void rows(const RowBlock& block) override;

  size_t held_bytes() const { return opaque_.capacity(); }
  void free() { opaque_.free(); }

 private:
  RowSink* to_ = nullptr;
  Buffer opaque_;  // with the layout of a block's channels
};

// Adds a border of one color to rows: the input of a resize of a padded picture. Neither picture is
// ever complete in memory.
class FramedRows final : public RowSink {
 public:
  // `wanted`: the part of the larger picture whose rows `to` gets. `picture`: the position of the
  // picture on the larger picture, which may be outside `wanted`. Borrows `to` until the last row.
  void begin(RowSink& to, const Window& wanted, const Window& picture, int channels,
             const std::array<uint8_t, kMaxChannels>& fill);
  // The part of the picture whose rows must be passed to rows(), in coordinates of the picture; may
  // be empty.
  Window needed() const { return needed_; }
  // RowBlock::y and x count from needed().
  void rows(const RowBlock& block) override;
  // Forwards the border below the picture. REQUIRES: all rows have arrived.
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
  int left_ = 0, top_ = 0;  // border between the wanted part and the picture in it
  int next_ = 0;            // number of rows forwarded to `to_`
  ptrdiff_t plane_ = 0;
  Buffer rows_;  // a row of only border, and one for a row of the picture
};

// Stores the rows of a window and returns them transposed, for EXIF orientations 5 to 8.
class WindowBuffer final : public RowSink {
 public:
  // For the rows of a width x height window.
  void begin(int channels, int width, int height);
  void rows(const RowBlock& block) override;
  // The transposed window, height x width: all rows as one block, valid until the next begin().
  RowBlock transposed();

  size_t held_bytes() const { return kept_.capacity() + transposed_.capacity(); }
  void free();
  static size_t working_bytes(int channels, int width, int height);

 private:
  int channels_ = 0, width_ = 0, height_ = 0;
  ptrdiff_t stride_ = 0, transposed_stride_ = 0;
  Buffer kept_, transposed_;
};

// Stores the rows of a window whose samples are wider than bytes, because WidePass works on whole
// planes.
class WideRows final : public RowSink {
 public:
  // For the rows of a width x height window.
  void begin(int channels, int width, int height, DType dtype);
  void rows(const RowBlock& block) override;
  // REQUIRES: all rows have arrived. Valid until the next begin().
  const Picture& picture() const { return picture_; }

  size_t held_bytes() const { return picture_.pixels.capacity(); }
  void free() { picture_.pixels.free(); }

 private:
  Picture picture_;
};

}  // namespace headrace
