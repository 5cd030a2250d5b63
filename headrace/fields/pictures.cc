// SPDX-License-Identifier: Apache-2.0
#include "headrace/fields/pictures.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/fields/numbers.h"
#include "headrace/image/coded_window.h"
#include "headrace/image/device_warp.h"

namespace headrace {
namespace {

const ErrorCode kColorMask{
    "HR0121", ErrorKind::kData, "mask with several channels",
    "A mask is a single-channel image whose values are labels: grayscale or palette. This file "
    "has colors. Read it as an image field if the colors matter, or convert it once."};

const ErrorCode kAnotherForm{
    "HR0129", ErrorKind::kData, "image shape differs from the schema",
    "With mode=\"stored\", a batch contains images as stored in their files, so all of them must "
    "have the same number of channels and the same bit depth as the first image of the dataset; "
    "this one differs. mode=\"RGB\", \"L\" or \"RGBA\" converts them all; or separate the files by "
    "type."};

const ErrorCode kNoStoredForm{
    "HR0135", ErrorKind::kUnsupported, "image not available as stored",
    "mode=\"stored\" delivers the channels and samples of the file. To avoid losing data silently, "
    "it rejects CMYK images, and images for which the codec delivers only the high 8 bits of wider "
    "samples."};

const ErrorCode kAnnotatedSize{
    "HR0140", ErrorKind::kData, "image size differs from its annotations",
    "The annotations were made for an image of a different size than the one in the file, so "
    "boxes, masks and keypoints would be misplaced. Often the image is stored sideways and an Exif "
    "tag rotates it for display: use exif_orientation=True. Otherwise the folder belongs to "
    "another dataset, or its images were resized after annotation. hr.coco(check_sizes=False) "
    "reads them anyway, as does fields=(\"image\",)."};

// Whether the stored picture lies on its side, so that turning it upright swaps its sides.
bool is_on_its_side(int orientation) { return orientation >= 5; }

Result<void> check_annotated_size(const BeginContext& from, const ImageHeader& header) {
  const int width = from.data.annotated_width, height = from.data.annotated_height;
  if (width <= 0 || height <= 0) return {};
  const bool turns = from.options.exif_orientation.value_or(false);
  const bool swaps = is_on_its_side(header.exif_orientation);
  const bool turned = turns && swaps;
  const int is_width = turned ? header.height : header.width;
  const int is_height = turned ? header.width : header.height;
  if (is_width == width && is_height == height) return {};
  const auto text = [](int w, int h) { return std::to_string(w) + " x " + std::to_string(h); };
  Error error{.code = &kAnnotatedSize,
              .what = "\"" + from.state.name + "\" is " + text(is_width, is_height) +
                      " (width x height), but its annotations are for " + text(width, height),
              .hint = "check the image folder; hr.coco(check_sizes=False) skips this check"};
  if (swaps && is_width == height && is_height == width) {
    error.hint = turns ? "use exif_orientation=False: the annotations were made for the image as "
                         "stored"
                       : "exif_orientation=True rotates the image as its Exif tag (" +
                             std::to_string(header.exif_orientation) + ") says";
  }
  return error;
}

std::string text_of_form(const PictureForm& form) {
  return text_of(form.sample, {form.channels, -1, -1});
}

Result<void> begin_encoded(const BeginContext& from, Recipe& recipe) {
  Result<EncodedImage> opened =
      from.renderer.open(from.data.bytes, from.options.limits, from.options.page);
  if (!opened) return std::move(opened.error());
  opened->strict = from.options.strict;
  opened->repair = from.options.repair;
  opened->sixteen_bit = from.options.sixteen_bit;
  opened->row_index = from.data.row_index;
  const Result<PictureForm> form = picture_form(from.options.mode, from.state.kind, opened->header);
  if (!form) {
    Error error = form.error();
    error.what = "\"" + from.state.name + "\" " + error.what;
    return error;
  }
  if (form->channels != from.state.shape[0] || form->sample != from.state.dtype) {
    return Error{.code = &kAnotherForm,
                 .what = "\"" + from.state.name + "\" is " + text_of_form(*form) +
                         ", but the first one was " + text_of(from.state),
                 .hint = "use mode=\"RGB\", \"L\" or \"RGBA\" to convert all images"};
  }
  opened->color = form->color;
  opened->sample = form->sample;
  if (Result<void> fits = check_annotated_size(from, opened->header); !fits) return fits;
  recipe = Recipe(*opened);
  const int orientation = opened->header.exif_orientation;
  if (from.options.exif_orientation.value_or(false)) {
    apply_exif_orientation(recipe, orientation);
  } else if (!from.options.exif_orientation && orientation != 1) {
    from.renderer.count_ignored_orientation();
  }
  return {};
}

// A trivial warp does not mix pixels, so it becomes ordinary edits. A recipe that accepts the first
// of these accepts the second, so a recipe that rejects them is unchanged.
bool turned(Recipe& picture, const Warp& warp) {
  const int turns = *warp.quarter_turns;
  if (turns % 2 && !picture.transpose()) return false;
  if ((turns == 2 || turns == 3) && !picture.flip_horizontal()) return false;
  return (turns != 1 && turns != 2) || picture.flip_vertical();
}

// A warp that only shifts by whole pixels: a crop of the remaining part, and a border.
Geometry shifted(const Warp& warp, std::span<const double> fill) {
  static constexpr double kBlack[] = {0};
  const auto [x, y] = *warp.shift;
  return Geometry()
      .crop({std::max(0, -x), std::max(0, -y), warp.to.width - std::abs(x),
             warp.to.height - std::abs(y)})
      .pad({std::max(0, x), std::max(0, y), std::max(0, -x), std::max(0, -y)},
           fill.empty() ? std::span<const double>(kBlack) : fill);
}

// Applies the move to a recipe; false if the recipe cannot hold it. REQUIRES: not a warp, except a
// rotation by quarter turns.
bool edited(Recipe& picture, const Geometry::Move& move, std::optional<Filter> filter) {
  return std::visit(Cases{[&](const Geometry::Crop& crop) { return picture.crop(crop.window); },
                          [&](const Geometry::Resize& resize) {
                            return picture.resize(resize.to, filter.value_or(resize.filter));
                          },
                          [&](const Geometry::Pad& pad) {
                            ChannelValues fill{};
                            for (size_t c = 0; c < fill.size(); ++c) {
                              if (pad.fill.size() == 1) fill[c] = pad.fill[0];
                              if (pad.fill.size() > 1 && c < pad.fill.size()) fill[c] = pad.fill[c];
                            }
                            const Borders& add = pad.borders;
                            return picture.pad(
                                add.left, add.top, add.right, add.bottom,
                                std::span(fill).first(static_cast<size_t>(picture.channels())));
                          },
                          [&](Geometry::FlipHorizontal) { return picture.flip_horizontal(); },
                          [&](Geometry::FlipVertical) { return picture.flip_vertical(); },
                          [&](Geometry::Transpose) { return picture.transpose(); },
                          [&](const Warp& warp) { return turned(picture, warp); }},
                    move);
}

// A recipe cannot hold such borders. Only the part that a crop keeps is made.
Result<void> pad_from_image(Renderer& renderer, const Geometry::Pad& pad,
                            const Geometry::Crop* crop, Recipe& picture) {
  const Borders& add = pad.borders;
  const Size size = picture.size();
  Window part{0, 0, size.width + add.left + add.right, size.height + add.top + add.bottom};
  if (crop) part = crop->window;
  part.x -= add.left;
  part.y -= add.top;
  if (Result<void> made = renderer.materialize(picture); !made) return made;
  const std::shared_ptr<const Picture> from = picture.pixels();
  const size_t after =
      size_t(part.height) * size_t(part.width) * size_t(from->channels) * size_of(from->dtype);
  if (Result<void> fits = renderer.check_growth(from->pixels.size(), after); !fits) return fits;
  picture = Recipe(padded_part(*picture.pixels(), pad.padding, part));
  return {};
}

const ErrorCode kTooMuchToWarp{
    "HR0126", ErrorKind::kResource, "warped image exceeds the memory limit",
    "A warp with expand=True can enlarge long images considerably, and this image would exceed one "
    "record's share of memory_limit. Nothing was allocated. Resize or crop first, drop "
    "expand=True, or raise memory_limit."};

// Memory for a growing result is not reserved, so it must stay within the limit of one record.
bool outgrows(const WarpedPicture& picture, const Renderer& renderer) {
  const Size from = source_size(picture), to = picture.warp.to;
  const size_t before = size_t(from.height) * size_t(from.width);
  const size_t after = size_t(to.height) * size_t(to.width);
  const size_t pixel = size_t(source_channels(picture)) * size_of(dtype_of(picture));
  return after > before && after * pixel > renderer.largest_value();
}

// If a device decodes the image, it also does the warp, provided that it has a kernel for it.
bool defer_as_warp(const Warp& warp, bool is_mask, Recipe& picture) {
  if (is_mask || !picture.left_to_device() || warp.to != picture.size() ||
      !runs_on_device(warp, is_mask, picture.channels())) {
    return false;
  }
  picture = pending(std::move(picture), warp_pass(warp));
  return true;
}

// A shift is an edit of the decoded picture. After colors or a pass, it is an ordinary warp.
bool defer_as_shift(const Warp& warp, const Geometry& shift, Recipe& picture) {
  if (!picture.left_to_device()) return false;
  Recipe shifted = picture;
  const auto fits = [&](const Geometry::Move& move) { return edited(shifted, move, {}); };
  NotCoded why{};
  if (!std::ranges::all_of(shift.moves(), fits) || !coded_program_of(shifted, why)) {
    return defer_as_warp(warp, /*is_mask=*/false, picture);
  }
  picture = std::move(shifted);
  return true;
}

Result<void> warp_pixels(Renderer& renderer, const Warp& warp, bool is_mask, Recipe& picture) {
  WarpedPicture warped{.from = {}, .warp = warp, .is_mask = is_mask, .collage = picture.collage()};
  if (!warped.collage) {
    if (Result<void> made = renderer.materialize(picture); !made) return made;
    warped.from = picture.pixels();
  }
  if (outgrows(warped, renderer)) {
    return Error{.code = &kTooMuchToWarp,
                 .what = "it would be " + std::to_string(warp.to.height) + " x " +
                         std::to_string(warp.to.width) + " (height x width)"};
  }
  picture = Recipe(std::make_shared<const WarpedPicture>(std::move(warped)));
  return {};
}

}  // namespace

void apply_exif_orientation(Recipe& picture, int orientation) {
  const bool across = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool down = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  [[maybe_unused]] const bool held = (orientation < 5 || picture.transpose()) &&
                                     (!across || picture.flip_horizontal()) &&
                                     (!down || picture.flip_vertical());
  assert(held);
}

bool take_picture(Field& field, FieldKind kind) {
  if (is_stored_bytes(field)) {
    field.encoded = true;
    field.shape = {-1, -1, -1};
  } else {
    Shape shape = field.shape;
    if (shape.size() == 2) shape.insert(shape.begin(), 1);
    if (is_string(field.kind) || !can_be_picture(field.dtype, shape)) return false;
    field.shape = shape;
  }
  field.kind = kind;
  return true;
}

PictureForm picture_form(PictureMode mode, FieldKind kind) {
  const ColorMode color = record_of(kind).color;
  if (color != ColorMode::kRGB) return {.color = color, .channels = 1};
  switch (mode) {
    case PictureMode::kL:
      return {.color = ColorMode::kGray, .channels = 1};
    case PictureMode::kRGBA:
      return {.color = ColorMode::kRGBA, .channels = 4};
    default:
      return {};
  }
}

Result<PictureForm> picture_form(PictureMode mode, FieldKind kind, const ImageHeader& header) {
  PictureForm form = picture_form(mode, kind);
  const bool is_mask = form.color == ColorMode::kStored;
  if (is_mask && channels_of(form.color, header) != 1) {
    return Error{.code = &kColorMask,
                 .what = "has " + std::to_string(header.channels) + " channels"};
  }
  if (mode != PictureMode::kStored) return form;
  const auto refused = [](std::string what) {
    return Error{
        .code = &kNoStoredForm, .what = std::move(what), .hint = "mode=\"RGB\", \"L\" or \"RGBA\""};
  };
  if (header.bits > 8 && header.sample == DType::kUInt8) {
    return refused("has " + std::to_string(header.bits) +
                   " bits, but this codec delivers only the 8 high bits");
  }
  if (is_mask) {
    form.sample = header.sample;
    return form;
  }
  if (header.palette)
    return picture_form(header.alpha ? PictureMode::kRGBA : PictureMode::kRGB, kind);
  if (header.inks) return refused("is a CMYK image");
  return PictureForm{ColorMode::kStored, header.sample, header.channels};
}

bool is_picture_dtype(DType dtype) {
  return dtype == DType::kUInt8 || dtype == DType::kUInt16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat16;
}

bool can_be_picture(DType dtype, const Shape& shape) {
  if (!is_picture_dtype(dtype) || shape.size() != 3) return false;
  constexpr int64_t kColors = 4;
  const bool channels_last = shape[0] > kColors && shape[2] >= 1 && shape[2] <= kColors;
  return shape[0] >= 1 && shape[0] <= kMaxChannels && !channels_last;
}

Result<void> begin_picture(const BeginContext& from, FieldValue& value) {
  if (from.field.encoded) return begin_encoded(from, value.picture);
  const FieldData& data = from.data;
  const Shape& shape = data.shape.empty() ? from.state.shape : data.shape;
  if (!allows(from.state.shape, shape) || element_count(shape) == 0 ||
      data.bytes.size() != static_cast<size_t>(element_count(shape)) * size_of(from.state.dtype)) {
    return wrong_value(from.state, data);
  }
  value.picture = Recipe();  // releases the pixels, whose memory this record can then reuse
  std::shared_ptr<Picture>& memory = from.pixels;
  if (!memory || memory.use_count() > 1) memory = std::make_shared<Picture>();
  memory->channels = static_cast<int>(shape[0]);
  memory->height = static_cast<int>(shape[1]);
  memory->width = static_cast<int>(shape[2]);
  memory->dtype = from.state.dtype;
  memory->pixels.resize(data.bytes.size());
  std::memcpy(memory->pixels.data(), data.bytes.data(), data.bytes.size());
  value.picture = Recipe(std::shared_ptr<const Picture>(memory));
  return {};
}

Result<void> follow_picture(const FollowContext& way, FieldValue& value,
                            std::optional<Filter> filter) {
  const std::span<const Geometry::Move> moves = way.geometry.moves();
  for (size_t i = 0; i < moves.size(); ++i) {
    const auto* const pad = std::get_if<Geometry::Pad>(&moves[i]);
    const Warp* const warp = std::get_if<Warp>(&moves[i]);
    Result<void> done;
    if (pad && pad->padding != Padding::kConstant) {
      const auto* const crop =
          i + 1 < moves.size() ? std::get_if<Geometry::Crop>(&moves[i + 1]) : nullptr;
      done = pad_from_image(way.renderer, *pad, crop, value.picture);
      if (crop) ++i;
    } else if (warp && warp->shift) {
      const bool is_mask = filter.has_value();
      const Geometry shift =
          shifted(*warp, is_mask ? std::span(&warp->style.mask_fill, 1) : warp->style.fill);
      if (is_mask || !defer_as_shift(*warp, shift, value.picture)) {
        done = follow_picture({shift, way.canvas, way.renderer}, value, filter);
      }
    } else if (warp && !warp->quarter_turns) {
      if (defer_as_warp(*warp, filter.has_value(), value.picture)) continue;
      done = warp_pixels(way.renderer, *warp, filter.has_value(), value.picture);
    } else if (!edited(value.picture, moves[i], filter)) {
      // A resize applies to the border as well, which could be many pixels.
      const bool resizes = std::holds_alternative<Geometry::Resize>(moves[i]);
      done = resizes ? way.renderer.materialize_shown(value.picture)
                     : way.renderer.materialize(value.picture);
      if (done && !edited(value.picture, moves[i], filter)) {
        done = way.renderer.materialize(value.picture);
        if (done) edited(value.picture, moves[i], filter);
      }
    }
    if (!done) return done;
  }
  return {};
}

}  // namespace headrace
