// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/recipe.h"

#include <algorithm>
#include <cassert>
#include <type_traits>
#include <utility>

#include "headrace/image/collage.h"
#include "headrace/image/pending_picture.h"
#include "headrace/kernels/resample/resample.h"

namespace headrace {
namespace {

struct Part {
  int begin = 0, end = 0;
};

// The outputs of an axis that read any of the inputs [low, high).
Part outputs_of(Filter filter, int input, int output, int low, int high) {
  const auto reads = [&](int first, int count) { return first < high && first + count > low; };
  Part part{output, 0};
  const auto note = [&](int at) {
    part.begin = std::min(part.begin, at);
    part.end = at + 1;
  };
  if (input == output) return {low, high};
  if (is_nearest(filter)) {
    const std::vector<int32_t> samples = nearest_samples(filter, input, output);
    for (int at = 0; at < output; ++at) {
      if (reads(samples[size_t(at)], 1)) note(at);
    }
    return part;
  }
  const FilterScale scale(filter, input, output);
  for (int at = 0; at < output; ++at) {
    const FilterSpan span = scale.span(at);
    if (reads(span.first, span.count)) note(at);
  }
  return part;
}

std::array<uint8_t, 4> bytes_of(const ChannelValues& values) {
  std::array<uint8_t, 4> bytes{};
  for (size_t c = 0; c < bytes.size(); ++c) bytes[c] = static_cast<uint8_t>(values[c]);
  return bytes;
}

}  // namespace

Recipe::Recipe(EncodedPicture picture)
    : source_(picture),
      window_{0, 0, picture.header.width, picture.header.height},
      map_(PixelMap::identity(picture.sample)) {
  take_all();
}

Recipe::Recipe(std::shared_ptr<const Picture> picture)
    : window_{0, 0, picture->width, picture->height}, map_(PixelMap::identity(picture->dtype)) {
  source_ = std::move(picture);
  take_all();
}

Recipe::Recipe(std::shared_ptr<const WarpedPicture> picture)
    : window_{0, 0, picture->warp.to.width, picture->warp.to.height},
      map_(PixelMap::identity(dtype_of(*picture))) {
  source_ = std::move(picture);
  take_all();
}

Recipe::Recipe(std::shared_ptr<const Collage> collage)
    : window_{0, 0, collage->size.width, collage->size.height} {
  source_ = std::move(collage);
  take_all();
}

Recipe::Recipe(std::shared_ptr<const PendingPicture> picture)
    : window_{0, 0, picture->size.width, picture->size.height} {
  source_ = std::move(picture);
  take_all();
}

Size Recipe::size() const { return canvas_; }

int Recipe::channels() const { return steps_.channels(source_channels()); }

int Recipe::source_channels() const {
  return std::visit(
      []<class Source>(const Source& source) {
        if constexpr (std::is_same_v<Source, EncodedPicture>) {
          return channels_of(source.color, source.header);
        } else if constexpr (std::is_same_v<Source, std::shared_ptr<const WarpedPicture>>) {
          return headrace::source_channels(*source);
        } else if constexpr (std::is_same_v<Source, std::shared_ptr<const PendingPicture>>) {
          return source->from.channels();
        } else if constexpr (std::is_same_v<Source, std::monostate>) {
          return 0;
        } else {
          return source->channels;
        }
      },
      source_);
}

bool Recipe::is_derived() const {
  return std::holds_alternative<std::shared_ptr<const WarpedPicture>>(source_) ||
         std::holds_alternative<std::shared_ptr<const Collage>>(source_) || is_pending();
}

bool Recipe::is_pending() const {
  return std::holds_alternative<std::shared_ptr<const PendingPicture>>(source_);
}

bool Recipe::left_to_device() const {
  const auto* const encoded = std::get_if<EncodedPicture>(&source_);
  const bool starts_there = encoded ? encoded->on_device && encoded->sample == DType::kUInt8
                                    : pending_in_place() != nullptr;
  return starts_there && !frame_ && map_->is_identity() && erased_.empty() && steps_.are_coded() &&
         channels() == source_channels();
}

const PendingPicture* Recipe::pending_in_place() const {
  const auto* const source = std::get_if<std::shared_ptr<const PendingPicture>>(&source_);
  if (!source || resized_or_padded() || transpose_ || flip_x_before_ || flip_y_before_) {
    return nullptr;
  }
  const PendingPicture& picture = **source;
  const bool whole = window_ == Window{0, 0, picture.size.width, picture.size.height};
  return whole ? &picture : nullptr;
}

// Mirroring before the pass equals mirroring its result, if the function says so; then
// decoding does it.
bool Recipe::mirror_pending(bool (Recipe::*flip)()) {
  const PendingPicture* const picture = pending_in_place();
  if (!picture || !erased_.empty() || !picture->pass.function->keeps_mirrored) return false;
  PendingPicture mirrored = *picture;
  if (!(mirrored.from.*flip)()) return false;
  source_ = std::make_shared<const PendingPicture>(std::move(mirrored));
  return true;
}

// In place of the pending pass what it comes to, of the same size: pixels or a warp, and steps on
// them. False, and nothing is changed, where one recipe cannot hold these and what follows.
bool Recipe::start_from(const Recipe& source) {
  if (resize_ && !source.steps_.empty()) return false;  // they come before it
  PixelSteps steps = source.steps_;
  for (const PixelStep& step : steps_.all()) {
    if (!steps.add(step)) return false;
  }
  source_ = source.source_;
  steps_ = std::move(steps);
  return true;
}

Recipe pending(Recipe recipe, PendingPass pass) {
  const Size size = pass.warp ? pass.warp->to : recipe.size();
  return Recipe(std::make_shared<const PendingPicture>(
      PendingPicture{std::move(recipe), std::move(pass), size}));
}

bool Recipe::takes_as_it_is() const {
  return !resized_or_padded() && !transpose_ && !flip_x_before_ && !flip_y_before_ &&
         steps_.empty() && map_->is_identity() && erased_.empty();
}

Recipe::View Recipe::view() const {
  const auto* picture = std::get_if<std::shared_ptr<const Picture>>(&source_);
  if (!picture || !takes_as_it_is()) return {};
  return {picture->get(), window_};
}

std::shared_ptr<const Picture> Recipe::pixels() const {
  const auto* picture = std::get_if<std::shared_ptr<const Picture>>(&source_);
  if (!picture || !takes_as_it_is()) return nullptr;
  return window_ == Window{0, 0, (*picture)->width, (*picture)->height} ? *picture : nullptr;
}

std::shared_ptr<const Collage> Recipe::collage() const {
  const auto* collage = std::get_if<std::shared_ptr<const Collage>>(&source_);
  if (!collage || !takes_as_it_is()) return nullptr;
  const Size size = (*collage)->size;
  return window_ == Window{0, 0, size.width, size.height} ? *collage : nullptr;
}

bool Recipe::same_source(const Recipe& other) const {
  if (source_.index() != other.source_.index()) return false;
  if (const auto* encoded = std::get_if<EncodedPicture>(&source_)) {
    return encoded->bytes.data() == std::get<EncodedPicture>(other.source_).bytes.data();
  }
  return std::visit(
      [&]<class Source>(const Source& source) {
        if constexpr (requires { source.get(); }) {
          return source == std::get<Source>(other.source_);
        } else {
          return true;  // neither has any
        }
      },
      source_);
}

bool Recipe::crop(const Window& window) {
  if (has_noise()) return false;
  crop_pixels(window);
  crop_erased(window);
  return true;
}

void Recipe::crop_pixels(const Window& window) {
  if (!resized_or_padded()) {
    narrow(window);
    take_all();
    return;
  }
  const Window on_canvas = unflipped_after(window);
  canvas_ = {window.height, window.width};
  const Window left = common(on_canvas, {range_x_, range_y_, range_.width, range_.height});
  if (left.empty()) {  // nothing but border
    range_ = {0, 0, 0, 0};
    range_x_ = range_y_ = 0;
    return;
  }
  range_ = seen_from(range_x_ - range_.x, range_y_ - range_.y, left);
  range_x_ = left.x - on_canvas.x;
  range_y_ = left.y - on_canvas.y;
  if (!resize_) {  // then the range is pixels of the source: read no others
    narrow(range_);
    range_.x = range_.y = 0;
  }
  drop_empty_canvas();
}

// To where they lie in the cropped picture, as far as they do.
void Recipe::crop_erased(const Window& window) {
  std::erase_if(erased_, [&](Erased& erased) {
    erased.window = seen_from(window.x, window.y, common(erased.window, window));
    return erased.window.empty();
  });
}

bool Recipe::has_noise() const {
  return std::ranges::any_of(erased_, [](const Erased& part) { return part.noise.has_value(); });
}

bool Recipe::erase(const Erased& part) {
  erased_.push_back(part);
  return true;
}

bool Recipe::flip_horizontal() {
  if (has_noise()) return false;
  if (mirror_pending(&Recipe::flip_horizontal)) return true;
  bool& flip = resized_or_padded() ? flip_x_after_ : flip_x_before_;
  flip = !flip;
  for (Erased& erased : erased_) {
    Window& part = erased.window;
    part.x = canvas_.width - part.x - part.width;
  }
  return true;
}

bool Recipe::flip_vertical() {
  if (has_noise()) return false;
  if (mirror_pending(&Recipe::flip_vertical)) return true;
  bool& flip = resized_or_padded() ? flip_y_after_ : flip_y_before_;
  flip = !flip;
  for (Erased& erased : erased_) {
    Window& part = erased.window;
    part.y = canvas_.height - part.y - part.height;
  }
  return true;
}

bool Recipe::transpose() {
  if (resized_or_padded() || !erased_.empty()) return false;
  transpose_ = !transpose_;
  std::swap(flip_x_before_, flip_y_before_);  // transposing a mirrored row mirrors a column
  take_all();
  return true;
}

bool Recipe::resize(Size to, Filter filter) {
  if (to == size()) return true;
  if (resize_ || !steps_.empty() || !map_->is_identity() || !erased_.empty()) return false;
  if (padded_ && map_->input() != DType::kUInt8) return false;
  if (padded_ && range_.width == 0) {  // border alone
    canvas_ = to;
  } else if (padded_) {
    frame_and_resize(to, filter);
  } else {
    resize_ = Resize{to, filter};
    take_all();
  }
  return true;
}

// The border becomes the frame, and of the outcome what none of the picture's pixels reach becomes
// border: Pillow's weights leave one color as it is.
void Recipe::frame_and_resize(Size to, Filter filter) {
  flip_x_before_ ^= flip_x_after_;
  flip_y_before_ ^= flip_y_after_;
  const auto mirrored = [](bool mirror, int at, int extent, int whole) {
    return mirror ? whole - at - extent : at;
  };
  Frame frame{canvas_, 0, 0, {}};
  // Where the picture lies in what is resized; the frame's own place is that before the flips.
  const int x =
      mirrored(std::exchange(flip_x_after_, false), range_x_, range_.width, canvas_.width);
  const int y =
      mirrored(std::exchange(flip_y_after_, false), range_y_, range_.height, canvas_.height);
  frame.x = mirrored(flip_x_before_, x, range_.width, canvas_.width);
  frame.y = mirrored(flip_y_before_, y, range_.height, canvas_.height);
  for (size_t c = 0; c < fill_.size(); ++c) frame.fill[c] = static_cast<uint8_t>(fill_[c]);
  const Part across = outputs_of(filter, canvas_.width, to.width, x, x + range_.width);
  const Part down = outputs_of(filter, canvas_.height, to.height, y, y + range_.height);
  frame_ = frame;
  resize_ = Resize{to, filter};
  canvas_ = to;
  range_ = {across.begin, down.begin, across.end - across.begin, down.end - down.begin};
  if (range_.width <= 0 || range_.height <= 0) range_ = {0, 0, 0, 0};
  range_x_ = range_.x;
  range_y_ = range_.y;
  drop_empty_canvas();
}

bool Recipe::pad(int left, int top, int right, int bottom, std::span<const double> fill) {
  if (left == 0 && top == 0 && right == 0 && bottom == 0) return true;
  if (!map_->is_identity() || !erased_.empty()) return false;
  ChannelValues wanted{};
  std::copy_n(fill.begin(), std::min(fill.size(), wanted.size()), wanted.begin());
  if (padded_ && wanted != fill_) return false;
  if (flip_x_after_) std::swap(left, right);
  if (flip_y_after_) std::swap(top, bottom);
  if (!padded_) first_fill_.reset();
  padded_ = true;
  fill_ = wanted;
  canvas_ = {canvas_.height + top + bottom, canvas_.width + left + right};
  range_x_ += left;
  range_y_ += top;
  return true;
}

std::optional<Recipe::Shown> Recipe::shown() const {
  if (!padded_ || !map_->is_identity() || !erased_.empty() || range_.width == 0) return {};
  return Shown{unflipped_after({range_x_, range_y_, range_.width, range_.height}), fill_};
}

bool Recipe::compute(const PixelStep& step) {
  const int before = channels();
  const bool before_any = steps_.empty();
  PixelStep its = step;
  if (map_->input() != DType::kUInt8) its.table.reset();  // a table is of bytes
  if (!map_->is_identity() || !erased_.empty() || !steps_.add(its)) return false;
  if (!padded_) return true;
  if (before_any && map_->input() == DType::kUInt8) first_fill_ = bytes_of(fill_);
  PixelSteps alone;
  alone.add(its);
  fill_ = alone.of_pixel(fill_, map_->input(), before);
  return true;
}

bool Recipe::map(const MapStep& step) {
  const PixelMap* const map = map_->then(step);
  if (!erased_.empty() && map != map_) return false;
  map_ = map;
  return true;
}

Size Recipe::oriented() const {
  return transpose_ ? Size{window_.width, window_.height} : Size{window_.height, window_.width};
}

void Recipe::narrow(Window window) {
  const Size size = oriented();
  if (flip_x_before_) window.x = size.width - window.x - window.width;
  if (flip_y_before_) window.y = size.height - window.y - window.height;
  if (transpose_) window = {window.y, window.x, window.height, window.width};
  window_ = {window_.x + window.x, window_.y + window.y, window.width, window.height};
}

void Recipe::take_all() {
  canvas_ = resize_ ? resize_->to : oriented();
  range_ = {0, 0, canvas_.width, canvas_.height};
  range_x_ = range_y_ = 0;
}

Window Recipe::unflipped_after(Window window) const {
  if (flip_x_after_) window.x = canvas_.width - window.x - window.width;
  if (flip_y_after_) window.y = canvas_.height - window.y - window.height;
  return window;
}

// A crop may have cut every border off again; then a resize may follow and flips need not wait.
void Recipe::drop_empty_canvas() {
  if (canvas_ != Size{range_.height, range_.width}) return;
  padded_ = false;
  fill_ = {};
  first_fill_.reset();
  if (resize_) return;
  flip_x_before_ ^= std::exchange(flip_x_after_, false);
  flip_y_before_ ^= std::exchange(flip_y_after_, false);
}

}  // namespace headrace
