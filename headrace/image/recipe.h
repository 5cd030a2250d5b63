// SPDX-License-Identifier: Apache-2.0
// The pending operations on an image before its pixels exist.
//
// A recipe is a normal form, and its fields are in the order in which rendering applies them:
//
//   source (encoded, pixels, a collage, a warp, or a pass that is pending)
//          -> window -> orientation (transpose, then flips)
//          -> at most one resize, of the window or of a frame of one color around it
//          -> range of the resized picture, placed on a canvas with a fill -> flips after
//          -> pixel steps -> pixel map -> store -> rectangles erased
//
// Operators edit it through the members below. Each member either changes the recipe so that
// rendering it equals rendering the old one and then doing the step (bit for bit, against Pillow),
// and returns true; or returns false and leaves it as it was: then the picture must be materialized
// first and the step starts a new recipe (`materialize` in render.h; ops call `edit`, which does
// both).
//
// The rules, each with its test in recipe_test.cc:
//  - before a resize, a crop narrows the window (through the orientation), a flip toggles `before`;
//  - after a resize or a pad, a crop narrows range and canvas and keeps the full resize's
//    coefficients and pass order; a flip toggles `after`; it is never moved before the resize;
//  - a crop before a resize makes an image of its own: support is clipped at the window's edges;
//  - two resizes never fold; a resize does not follow a pixel step or a pixel map; a resize to the
//    present size is no step at all (Pillow copies);
//  - a resize of a padded picture of bytes makes its border the frame; what shows nothing of the
//    picture then is border again;
//  - pads of equal fill fold; a pad whose fill differs from what the pixel steps have made of it,
//  or
//    that follows a pixel map, does not; a crop that cuts every border off undoes them;
//  - geometry commutes with pixel steps and the pixel map, so crops and flips may follow them;
//  - a pixel step does not follow a pixel map; it works on a border's fill too;
//  - rectangles are erased last: crops and flips move them along, others may follow, and nothing
//    else; after one of noise no move may;
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

// Encoded bytes and what their header said. `bytes` is borrowed from the record that is in flight.
struct EncodedPicture {
  std::span<const uint8_t> bytes;
  const CodecRecord* codec = nullptr;
  ImageHeader header;
  ColorMode color = ColorMode::kRGB;
  DType sample = DType::kUInt8;  // of what is decoded
  // As DecodeJob has them.
  bool strict = false, repair = false;
  SixteenBit sixteen_bit = SixteenBit::kRefuse;
  int page = 0;
  RowIndexSlot row_index = {};
  bool on_device = false;  // it is to be decoded there, if its steps allow that
};

struct Collage;         // collage.h, which is made of recipes
struct PendingPicture;  // pending_picture.h, likewise

// The normal form. Only a Recipe changes it; what renders it, or translates it for a device, reads
// it.
struct RecipeForm {
  struct Resize {
    Size to;
    Filter filter;
  };
  // The border of a picture that is resized with it.
  struct Frame {
    Size size;         // with the picture
    int x = 0, y = 0;  // of the oriented window, before the flips
    std::array<uint8_t, kMostChannels> fill{};
  };

  std::variant<std::monostate, EncodedPicture, std::shared_ptr<const Picture>,
               std::shared_ptr<const WarpedPicture>, std::shared_ptr<const Collage>,
               std::shared_ptr<const PendingPicture>>
      source = {};
  Window window = {};                                 // in the source's stored coordinates
  bool transpose = false;                             // of the window
  bool flip_x_before = false, flip_y_before = false;  // of the (transposed) window
  std::optional<Frame> frame = {};                    // of what is resized; else none
  std::optional<Resize> resize = {};
  Window range = {};  // of the resized picture, not flipped; may be empty under a canvas
  bool padded = false;
  Size canvas = {};              // equal to the range's size where not padded
  int range_x = 0, range_y = 0;  // where the range lies on the canvas
  ChannelValues fill{};          // of the canvas, as the pixel steps leave it
  // The fill after the pixel steps that came after it; in bytes.
  std::optional<std::array<uint8_t, 4>> first_fill = {};
  bool flip_x_after = false, flip_y_after = false;
  PixelSteps steps = {};
  const PixelMap* map = PixelMap::identity(DType::kUInt8);
  std::vector<Erased> erased = {};  // in order; most recipes have none

  int source_channels() const;
  Size oriented() const;  // of the window, after the orientation
  bool resized_or_padded() const { return resize.has_value() || padded; }
  bool has_noise() const;
};

class Recipe {
 public:
  Recipe() = default;
  explicit Recipe(EncodedPicture picture);
  // Shared: branches of a Fork start from the same pixels.
  explicit Recipe(std::shared_ptr<const Picture> picture);
  // Starts with its result. shared: branches, until one of them is made.
  explicit Recipe(std::shared_ptr<const WarpedPicture> picture);
  explicit Recipe(std::shared_ptr<const Collage> collage);         // shared likewise
  explicit Recipe(std::shared_ptr<const PendingPicture> picture);  // shared likewise

  // The current size, i.e. that of the rendered result.
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
  // Where the picture lies on its border, and that border's fill; nothing where there is none, or
  // where no pad could put the same border back. To be cropped to, materialized and padded again.
  struct Shown {
    Window window;
    ChannelValues fill{};
  };
  [[nodiscard]] std::optional<Shown> shown() const;
  // Computes from the pixels there are. REQUIRES: the function takes so many channels, and floats
  // where the dtype is one.
  [[nodiscard]] bool compute(const PixelStep& step);
  [[nodiscard]] bool map(const MapStep& step);
  // Sets a part of the picture to one value per channel, in the current dtype's range, or to noise.
  // REQUIRES: inside size(), not empty.
  [[nodiscard]] bool erase(const Erased& part);

  // The pixels, if no operation is pending; else null.
  [[nodiscard]] std::shared_ptr<const Picture> pixels() const;
  // A part of the pixels, if cropping is the only pending operation; else null.
  struct View {
    const Picture* picture = nullptr;  // the recipe's
    Window window;
  };
  [[nodiscard]] View view() const;
  // As pixels(), of a collage.
  [[nodiscard]] std::shared_ptr<const Collage> collage() const;
  // Whether `other` starts from the same encoded bytes or the same pixels: between the two nothing
  // was materialized.
  [[nodiscard]] bool same_source(const Recipe& other) const;
  // Whether a warp or a collage is still to be computed: what several want of it is materialized
  // first.
  [[nodiscard]] bool is_derived() const;
  // The encoded image that it starts from; else null.
  [[nodiscard]] const EncodedPicture* encoded() const {
    return std::get_if<EncodedPicture>(&form_.source);
  }
  // A device is to decode it, if its steps allow that. REQUIRES: encoded().
  void leave_to_device() { std::get<EncodedPicture>(form_.source).on_device = true; }
  // Whether a pass over all pixels may be noted (pending_picture.h) in place of being done: a
  // device decodes the image, and nothing so far keeps it from doing the rest.
  [[nodiscard]] bool left_to_device() const;
  // Whether it starts from such a pass.
  [[nodiscard]] bool is_pending() const;
  // The pending pass if each pixel stays at its position; else null.
  [[nodiscard]] const PendingPicture* pending_in_place() const;
  // Puts what the pending pass comes to, of the same size, in its place: pixels or a warp, and
  // steps on them. False, and nothing is changed, if one recipe cannot hold these and what follows.
  [[nodiscard]] bool replace_pending(const Recipe& outcome);

  // Takes off the last steps that need no neighboring pixels; rendering the rest and then doing
  // these gives the same. REQUIRES: at most one rectangle is erased, not by noise, and the map
  // starts from bytes.
  struct End {
    bool flip = false;  // horizontally
    std::shared_ptr<const QuickTable> table = {};
    const PixelMap* map = nullptr;
    std::optional<Erased> erased = {};
  };
  End take_end();

  const RecipeForm& form() const { return form_; }

 private:
  bool takes_as_it_is() const;  // the window's pixels
  bool mirror_pending(bool (Recipe::*flip)());
  void frame_and_resize(Size to, Filter filter);
  void crop_pixels(const Window& window);
  void crop_erased(const Window& window);
  void narrow(Window window);                   // of the oriented window
  void take_all();                              // range and canvas = all of what precedes them
  Window unflipped_after(Window window) const;  // from the present picture to the canvas
  void drop_empty_canvas();

  RecipeForm form_;
};

}  // namespace headrace
