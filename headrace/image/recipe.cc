// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/recipe.h"

#include <algorithm>
#include <utility>

#include "headrace/kernels/resample.h"

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
  if (filter == Filter::kNearest) {
    const std::vector<int32_t> samples = nearest_samples(input, output);
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

}  // namespace

Recipe::Recipe(EncodedPicture picture)
    : source_(picture), window_{0, 0, picture.header.width, picture.header.height} {
  take_all();
}

Recipe::Recipe(std::shared_ptr<const Picture> picture)
    : window_{0, 0, picture->width, picture->height}, map_(PixelMap::identity(picture->dtype)) {
  source_ = std::move(picture);
  take_all();
}

Recipe::Recipe(std::shared_ptr<const WarpedPicture> picture)
    : window_{0, 0, picture->warp.to.width, picture->warp.to.height} {
  source_ = std::move(picture);
  take_all();
}

Size Recipe::size() const { return canvas_; }

int Recipe::channels() const { return steps_.channels(source_channels()); }

int Recipe::source_channels() const {
  if (const auto* encoded = std::get_if<EncodedPicture>(&source_)) {
    return channels_of(encoded->color, encoded->header);
  }
  if (const auto* warped = std::get_if<std::shared_ptr<const WarpedPicture>>(&source_)) {
    return (*warped)->from->channels;
  }
  const auto* picture = std::get_if<std::shared_ptr<const Picture>>(&source_);
  return picture ? (*picture)->channels : 0;
}

bool Recipe::is_warped() const {
  return std::holds_alternative<std::shared_ptr<const WarpedPicture>>(source_);
}

std::shared_ptr<const Picture> Recipe::pixels() const {
  const auto* picture = std::get_if<std::shared_ptr<const Picture>>(&source_);
  if (!picture || resized_or_padded() || transpose_ || flip_x_before_ || flip_y_before_ ||
      !steps_.empty() || !map_->is_identity() || !erased_.empty() ||
      window_ != Window{0, 0, (*picture)->width, (*picture)->height}) {
    return nullptr;
  }
  return *picture;
}

bool Recipe::same_source(const Recipe& other) const {
  if (source_.index() != other.source_.index()) return false;
  if (const auto* encoded = std::get_if<EncodedPicture>(&source_)) {
    return encoded->bytes.data() == std::get<EncodedPicture>(other.source_).bytes.data();
  }
  if (is_warped()) {
    return std::get<std::shared_ptr<const WarpedPicture>>(source_) ==
           std::get<std::shared_ptr<const WarpedPicture>>(other.source_);
  }
  const auto* picture = std::get_if<std::shared_ptr<const Picture>>(&source_);
  return !picture || *picture == std::get<std::shared_ptr<const Picture>>(other.source_);
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
  const int left = std::max(on_canvas.x, range_x_);
  const int top = std::max(on_canvas.y, range_y_);
  const int right = std::min(on_canvas.x + on_canvas.width, range_x_ + range_.width);
  const int bottom = std::min(on_canvas.y + on_canvas.height, range_y_ + range_.height);
  if (left >= right || top >= bottom) {  // nothing but border is left
    range_ = {0, 0, 0, 0};
    range_x_ = range_y_ = 0;
    return;
  }
  range_ = {range_.x + left - range_x_, range_.y + top - range_y_, right - left, bottom - top};
  range_x_ = left - on_canvas.x;
  range_y_ = top - on_canvas.y;
  if (!resize_) {  // then the range is pixels of the source: read no others
    narrow(range_);
    range_.x = range_.y = 0;
  }
  drop_empty_canvas();
}

// To where they lie in the cropped picture, as far as they do.
void Recipe::crop_erased(const Window& window) {
  std::erase_if(erased_, [&](Erased& erased) {
    Window& part = erased.window;
    const int left = std::max(part.x, window.x), top = std::max(part.y, window.y);
    const int right = std::min(part.x + part.width, window.x + window.width);
    const int bottom = std::min(part.y + part.height, window.y + window.height);
    part = {left - window.x, top - window.y, right - left, bottom - top};
    return part.width <= 0 || part.height <= 0;
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
// border: Pillow's weights leave one colour as it is.
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
  std::array<double, 4> wanted{};
  std::copy_n(fill.begin(), std::min(fill.size(), wanted.size()), wanted.begin());
  if (padded_ && wanted != fill_) return false;
  if (flip_x_after_) std::swap(left, right);
  if (flip_y_after_) std::swap(top, bottom);
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
  PixelStep its = step;
  if (map_->input() != DType::kUInt8) its.table.reset();  // which is of bytes
  if (!map_->is_identity() || !erased_.empty() || !steps_.add(its)) return false;
  if (!padded_) return true;
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
  if (resize_) return;
  flip_x_before_ ^= std::exchange(flip_x_after_, false);
  flip_y_before_ ^= std::exchange(flip_y_after_, false);
}

}  // namespace headrace
