// SPDX-License-Identifier: Apache-2.0
// The pending operations on an image whose pixels have not been computed yet.
//
// A recipe is a normal form, and its fields are in the order in which rendering applies them:
//
//   source (encoded bytes, pixels, a collage, a warp, or a pending pass)
//          -> window -> orientation (transpose, then flips)
//          -> at most one resize, of the window, or of the window with a frame of one color
//          -> range of the resized picture, placed on a canvas with a fill -> flips after
//          -> pixel steps -> pixel map -> store -> rectangles erased
//
// Operators edit it through the members below. A member either changes the recipe so that rendering
// it equals rendering the old recipe and then applying the operation (bit for bit, compared with
// Pillow), and returns true; or it returns false and leaves the recipe unchanged. Then the picture
// must be materialized first, and the operation starts a new recipe (`materialize` in render.h; ops
// call `edit`, which does both).
//
// The rules, each with its test in recipe_test.cc:
//  - before a resize, a crop narrows the window (through the orientation), a flip toggles `before`;
//  - after a resize or a pad, a crop narrows range and canvas and keeps the full resize's
//    coefficients and pass order; a flip toggles `after`; it is never moved before the resize;
//  - a crop before a resize makes a new image: the filter's support is clipped at the window's
//    edges;
//  - two resizes never fold; a resize cannot follow a pixel step or a pixel map; a resize to the
//    current size does nothing (Pillow copies);
//  - a resize of a padded 8-bit picture turns the border into the frame; if a later crop shows only
//    frame, it becomes a border again;
//  - pads with equal fill fold; a pad whose fill differs from the current fill after the pixel
//    steps, or that follows a pixel map, does not; a crop that removes all borders undoes the pads;
//  - geometry commutes with pixel steps and the pixel map, so crops and flips may follow them;
//  - a pixel step cannot follow a pixel map; it is also applied to a border's fill;
//  - rectangles are erased last: later crops and flips move them, and more rectangles may follow,
//    but nothing else; after a rectangle of noise, crops and flips cannot follow either;
//  - EXIF orientations 5-8 swap the axes before the resize, and so choose its pass order.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "headrace/codecs/codec.h"
#include "headrace/image/erased.h"
#include "headrace/image/picture.h"
#include "headrace/image/pixel_map.h"
#include "headrace/image/pixel_steps.h"
#include "headrace/image/warp.h"
#include "headrace/kernels/resample/filter.h"

namespace headrace {

// Encoded bytes and their header. `bytes` is borrowed from the record that is being processed.
struct EncodedImage {
  std::span<const uint8_t> bytes;
  const CodecRecord* codec = nullptr;
  ImageHeader header;
  ColorMode color = ColorMode::kRGB;
  DType sample = DType::kUInt8;  // dtype of the decoded samples
  // The same as in DecodeJob.
  bool strict = false, repair = false;
  SixteenBit sixteen_bit = SixteenBit::kRefuse;
  int page = 0;
  RowIndexSlot row_index = {};
  bool on_device = false;  // to be decoded on the device, if the operations allow it
};

struct Collage;         // defined in collage.h, which uses recipes
struct PendingPicture;  // defined in pending_picture.h, likewise

// The normal form. Only Recipe changes it; renderers, and code that translates it for a device,
// read it.
struct RecipeForm {
  struct Resize {
    Size to;
    Filter filter;
  };
  // The border of a picture that is resized with it.
  struct Frame {
    Size size;         // including the picture
    int x = 0, y = 0;  // position of the oriented window, before the flips
    std::array<uint8_t, kMaxChannels> fill{};
  };

  std::variant<std::monostate, EncodedImage, std::shared_ptr<const Picture>,
               std::shared_ptr<const WarpedPicture>, std::shared_ptr<const Collage>,
               std::shared_ptr<const PendingPicture>>
      source = {};
  Window window = {};                                 // in coordinates of the stored source
  bool transpose = false;                             // swaps the axes of the window
  bool flip_x_before = false, flip_y_before = false;  // of the (transposed) window
  std::optional<Frame> frame = {};  // if the picture is resized together with a border
  std::optional<Resize> resize = {};
  Window range = {};  // of the resized picture, not flipped; may be empty under a canvas
  bool padded = false;
  Size canvas = {};              // equal to the range's size if not padded
  int range_x = 0, range_y = 0;  // position of the range on the canvas
  ChannelValues fill{};          // of the canvas, after the pixel steps
  // The fill before the pixel steps, for 8-bit pictures; empty if the pad came after them.
  std::optional<std::array<uint8_t, 4>> first_fill = {};
  bool flip_x_after = false, flip_y_after = false;
  PixelSteps steps = {};
  const PixelMap* map = PixelMap::identity(DType::kUInt8);
  std::vector<Erased> erased = {};  // in order; most recipes have none

  int source_channels() const;
  Size oriented() const;  // size of the window after the orientation
  bool resized_or_padded() const { return resize.has_value() || padded; }
  bool has_noise() const;
};

class Recipe {
 public:
  Recipe() = default;
  explicit Recipe(EncodedImage picture);
  // Shared: branches of a Fork start from the same pixels.
  explicit Recipe(std::shared_ptr<const Picture> picture);
  // Starts from the warp's result. Shared: by branches, until one of them is rendered.
  explicit Recipe(std::shared_ptr<const WarpedPicture> picture);
  explicit Recipe(std::shared_ptr<const Collage> collage);         // shared likewise
  explicit Recipe(std::shared_ptr<const PendingPicture> picture);  // shared likewise

  // The size of the rendered result.
  [[nodiscard]] Size size() const;
  [[nodiscard]] int channels() const;
  [[nodiscard]] DType dtype() const { return form_.map->output(); }

  [[nodiscard]] bool crop(const Window& window);  // REQUIRES: inside size(), not empty
  [[nodiscard]] bool flip_horizontal();
  [[nodiscard]] bool flip_vertical();
  [[nodiscard]] bool transpose();  // swap the axes
  [[nodiscard]] bool resize(Size to, Filter filter);
  // Adds borders; `fill` has one value per channel, in the current dtype's range.
  [[nodiscard]] bool pad(int left, int top, int right, int bottom, std::span<const double> fill);
  // The part of the padded picture inside its border, and the border's fill. Empty if there is no
  // border, or if padding again would not give the same border. For callers that crop to the
  // window, materialize, and pad again.
  struct Shown {
    Window window;
    ChannelValues fill{};
  };
  [[nodiscard]] std::optional<Shown> shown() const;
  // Applies a computation to each pixel. REQUIRES: the function supports channels(), and floats if
  // dtype() is a float.
  [[nodiscard]] bool compute(const PixelStep& step);
  [[nodiscard]] bool map(const MapStep& step);
  // Sets a part of the picture to one value per channel, in the current dtype's range, or to noise.
  // REQUIRES: inside size(), not empty.
  [[nodiscard]] bool erase(const Erased& part);

  // The pixels, if no operation is pending; otherwise null.
  [[nodiscard]] std::shared_ptr<const Picture> pixels() const;
  // A part of the pixels, if cropping is the only pending operation; otherwise null.
  struct View {
    const Picture* picture = nullptr;  // the recipe's
    Window window;
  };
  [[nodiscard]] View view() const;
  // The collage, if no operation on it is pending; otherwise null.
  [[nodiscard]] std::shared_ptr<const Collage> collage() const;
  // Whether `other` starts from the same encoded bytes or the same pixels, so that nothing was
  // materialized in between.
  [[nodiscard]] bool same_source(const Recipe& other) const;
  // Whether the source is a warp or a collage that has not been computed yet. If several branches
  // need it, it is materialized first.
  [[nodiscard]] bool is_derived() const;
  // The encoded image that it starts from; otherwise null.
  [[nodiscard]] const EncodedImage* encoded() const {
    return std::get_if<EncodedImage>(&form_.source);
  }
  // Requests decoding on a device, if the operations allow it. REQUIRES: encoded().
  void leave_to_device() { std::get<EncodedImage>(form_.source).on_device = true; }
  // Whether a pass over all pixels may be recorded (pending_picture.h) instead of executed: a
  // device will decode the image, and supports all operations so far.
  [[nodiscard]] bool left_to_device() const;
  // Whether the source is such a pending pass.
  [[nodiscard]] bool is_pending() const;
  // The pending pass, if all pixels stay at their positions after it; otherwise null.
  [[nodiscard]] const PendingPicture* pending_in_place() const;
  // Replaces the pending pass with its result, of the same size: pixels or a warp, and pixel steps
  // on them. Returns false, and changes nothing, if one recipe cannot represent these and the
  // operations that follow.
  [[nodiscard]] bool replace_pending(const Recipe& outcome);

  // Removes the last operations that do not need neighboring pixels, and returns them: rendering
  // the rest and then applying these gives the same result. REQUIRES: at most one rectangle is
  // erased, not by noise, and the map's input is uint8.
  struct End {
    bool flip = false;  // horizontally
    std::shared_ptr<const QuickTable> table = {};
    const PixelMap* map = nullptr;
    std::optional<Erased> erased = {};
  };
  End take_end();

  const RecipeForm& form() const { return form_; }

 private:
  bool is_unmodified() const;  // whether the window's pixels are used unchanged
  bool mirror_pending(bool (Recipe::*flip)());
  void frame_and_resize(Size to, Filter filter);
  void crop_pixels(const Window& window);
  void crop_erased(const Window& window);
  void narrow(Window window);                   // in coordinates of the oriented window
  void take_all();                              // range and canvas = the whole picture before them
  Window unflipped_after(Window window) const;  // from the result to the canvas
  void drop_empty_canvas();

  RecipeForm form_;
};

}  // namespace headrace
