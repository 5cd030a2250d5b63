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

// The color that the table maps to this one, if there is such a color.
std::optional<ChannelValues> before_table(ChannelValues fill, const ColorTable& table,
                                          int channels) {
  for (size_t c = 0; c < size_t(channels); ++c) {
    const auto& values = table.of[c];
    const auto found = std::ranges::find(values, static_cast<uint8_t>(fill[c]));
    if (found == values.end()) return std::nullopt;
    fill[c] = static_cast<double>(found - values.begin());
  }
  return fill;
}

}  // namespace

Recipe::Recipe(EncodedImage picture)
    : form_{.source = picture,
            .window = {0, 0, picture.header.width, picture.header.height},
            .map = PixelMap::identity(picture.sample)} {
  take_all();
}

Recipe::Recipe(std::shared_ptr<const Picture> picture)
    : form_{.source = picture,
            .window = {0, 0, picture->width, picture->height},
            .map = PixelMap::identity(picture->dtype)} {
  take_all();
}

Recipe::Recipe(std::shared_ptr<const WarpedPicture> picture)
    : form_{.source = picture,
            .window = {0, 0, picture->warp.to.width, picture->warp.to.height},
            .map = PixelMap::identity(dtype_of(*picture))} {
  take_all();
}

Recipe::Recipe(std::shared_ptr<const Collage> collage)
    : form_{.source = collage, .window = {0, 0, collage->size.width, collage->size.height}} {
  take_all();
}

Recipe::Recipe(std::shared_ptr<const PendingPicture> picture)
    : form_{.source = picture, .window = {0, 0, picture->size.width, picture->size.height}} {
  take_all();
}

Size Recipe::size() const { return form_.canvas; }

int Recipe::channels() const { return form_.steps.channels(form_.source_channels()); }

int RecipeForm::source_channels() const {
  return std::visit(
      []<class Source>(const Source& from) {
        if constexpr (std::is_same_v<Source, EncodedImage>) {
          return channels_of(from.color, from.header);
        } else if constexpr (std::is_same_v<Source, std::shared_ptr<const WarpedPicture>>) {
          return headrace::source_channels(*from);
        } else if constexpr (std::is_same_v<Source, std::shared_ptr<const PendingPicture>>) {
          return from->from.channels();
        } else if constexpr (std::is_same_v<Source, std::monostate>) {
          return 0;
        } else {
          return from->channels;
        }
      },
      source);
}

bool Recipe::is_derived() const {
  return std::holds_alternative<std::shared_ptr<const WarpedPicture>>(form_.source) ||
         std::holds_alternative<std::shared_ptr<const Collage>>(form_.source) || is_pending();
}

bool Recipe::is_pending() const {
  return std::holds_alternative<std::shared_ptr<const PendingPicture>>(form_.source);
}

bool Recipe::left_to_device() const {
  const auto* const encoded = std::get_if<EncodedImage>(&form_.source);
  const bool starts_there = encoded ? encoded->on_device && encoded->sample == DType::kUInt8
                                    : pending_in_place() != nullptr;
  return starts_there && !form_.frame && form_.map->is_identity() && form_.erased.empty() &&
         form_.steps.are_coded() && channels() == form_.source_channels();
}

const PendingPicture* Recipe::pending_in_place() const {
  const auto* const source = std::get_if<std::shared_ptr<const PendingPicture>>(&form_.source);
  if (!source || form_.resized_or_padded() || form_.transpose || form_.flip_x_before ||
      form_.flip_y_before) {
    return nullptr;
  }
  const PendingPicture& picture = **source;
  const bool whole = form_.window == Window{0, 0, picture.size.width, picture.size.height};
  return whole ? &picture : nullptr;
}

// Mirroring before the pass equals mirroring its result, if the function says so; then
// decoding does it.
bool Recipe::mirror_pending(bool (Recipe::*flip)()) {
  const PendingPicture* const picture = pending_in_place();
  if (!picture || !form_.erased.empty() || !picture->pass.function->keeps_mirrored) return false;
  PendingPicture mirrored = *picture;
  if (!(mirrored.from.*flip)()) return false;
  form_.source = std::make_shared<const PendingPicture>(std::move(mirrored));
  return true;
}

bool Recipe::replace_pending(const Recipe& outcome) {
  if (form_.resize && !outcome.form_.steps.empty()) return false;  // the steps precede the resize
  PixelSteps steps = outcome.form_.steps;
  for (const PixelStep& step : form_.steps.all()) {
    if (!steps.add(step)) return false;
  }
  form_.source = outcome.form_.source;
  form_.steps = std::move(steps);
  return true;
}

Recipe pending(Recipe recipe, PendingPass pass) {
  const Size size = pass.warp ? pass.warp->to : recipe.size();
  return Recipe(std::make_shared<const PendingPicture>(
      PendingPicture{std::move(recipe), std::move(pass), size}));
}

bool Recipe::is_unmodified() const {
  return !form_.resized_or_padded() && !form_.transpose && !form_.flip_x_before &&
         !form_.flip_y_before && form_.steps.empty() && form_.map->is_identity() &&
         form_.erased.empty();
}

Recipe::View Recipe::view() const {
  const auto* picture = std::get_if<std::shared_ptr<const Picture>>(&form_.source);
  if (!picture || !is_unmodified()) return {};
  return {picture->get(), form_.window};
}

std::shared_ptr<const Picture> Recipe::pixels() const {
  const auto* picture = std::get_if<std::shared_ptr<const Picture>>(&form_.source);
  if (!picture || !is_unmodified()) return nullptr;
  return form_.window == Window{0, 0, (*picture)->width, (*picture)->height} ? *picture : nullptr;
}

std::shared_ptr<const Collage> Recipe::collage() const {
  const auto* collage = std::get_if<std::shared_ptr<const Collage>>(&form_.source);
  if (!collage || !is_unmodified()) return nullptr;
  const Size size = (*collage)->size;
  return form_.window == Window{0, 0, size.width, size.height} ? *collage : nullptr;
}

bool Recipe::same_source(const Recipe& other) const {
  if (form_.source.index() != other.form_.source.index()) return false;
  if (const auto* encoded = std::get_if<EncodedImage>(&form_.source)) {
    return encoded->bytes.data() == std::get<EncodedImage>(other.form_.source).bytes.data();
  }
  return std::visit(
      [&]<class Source>(const Source& source) {
        if constexpr (requires { source.get(); }) {
          return source == std::get<Source>(other.form_.source);
        } else {
          return true;  // neither of them has any
        }
      },
      form_.source);
}

bool Recipe::crop(const Window& window) {
  if (form_.has_noise()) return false;
  crop_pixels(window);
  crop_erased(window);
  return true;
}

void Recipe::crop_pixels(const Window& window) {
  if (!form_.resized_or_padded()) {
    narrow(window);
    take_all();
    return;
  }
  const Window on_canvas = unflipped_after(window);
  form_.canvas = {window.height, window.width};
  const Window left =
      common(on_canvas, {form_.range_x, form_.range_y, form_.range.width, form_.range.height});
  if (left.empty()) {  // nothing but border
    form_.range = {0, 0, 0, 0};
    form_.range_x = form_.range_y = 0;
    return;
  }
  form_.range = seen_from(form_.range_x - form_.range.x, form_.range_y - form_.range.y, left);
  form_.range_x = left.x - on_canvas.x;
  form_.range_y = left.y - on_canvas.y;
  if (!form_.resize) {  // then the range is in source pixels: read no others
    narrow(form_.range);
    form_.range.x = form_.range.y = 0;
  }
  drop_empty_canvas();
}

// Moves rectangles to their position in the cropped picture, and clips them to it.
void Recipe::crop_erased(const Window& window) {
  std::erase_if(form_.erased, [&](Erased& erased) {
    erased.window = seen_from(window.x, window.y, common(erased.window, window));
    return erased.window.empty();
  });
}

bool RecipeForm::has_noise() const {
  return std::ranges::any_of(erased, [](const Erased& part) { return part.noise.has_value(); });
}

bool Recipe::erase(const Erased& part) {
  form_.erased.push_back(part);
  return true;
}

bool Recipe::flip_horizontal() {
  if (form_.has_noise()) return false;
  if (mirror_pending(&Recipe::flip_horizontal)) return true;
  bool& flip = form_.resized_or_padded() ? form_.flip_x_after : form_.flip_x_before;
  flip = !flip;
  for (Erased& erased : form_.erased) {
    Window& part = erased.window;
    part.x = form_.canvas.width - part.x - part.width;
  }
  return true;
}

bool Recipe::flip_vertical() {
  if (form_.has_noise()) return false;
  if (mirror_pending(&Recipe::flip_vertical)) return true;
  bool& flip = form_.resized_or_padded() ? form_.flip_y_after : form_.flip_y_before;
  flip = !flip;
  for (Erased& erased : form_.erased) {
    Window& part = erased.window;
    part.y = form_.canvas.height - part.y - part.height;
  }
  return true;
}

bool Recipe::transpose() {
  if (form_.resized_or_padded() || !form_.erased.empty()) return false;
  form_.transpose = !form_.transpose;
  std::swap(form_.flip_x_before,
            form_.flip_y_before);  // transposing a mirrored row mirrors a column
  take_all();
  return true;
}

bool Recipe::resize(Size to, Filter filter) {
  if (to == size()) return true;
  if (form_.resize || !form_.steps.empty() || !form_.map->is_identity() || !form_.erased.empty())
    return false;
  if (form_.padded && form_.map->input() != DType::kUInt8) return false;
  if (form_.padded && form_.range.width == 0) {  // only border
    form_.canvas = to;
  } else if (form_.padded) {
    frame_and_resize(to, filter);
  } else {
    form_.resize = RecipeForm::Resize{to, filter};
    take_all();
  }
  return true;
}

// The border becomes the frame, and the part of the result that no pixel of the picture affects
// becomes the border: Pillow's weights do not change a uniform color.
void Recipe::frame_and_resize(Size to, Filter filter) {
  form_.flip_x_before ^= form_.flip_x_after;
  form_.flip_y_before ^= form_.flip_y_after;
  const auto mirrored = [](bool mirror, int at, int extent, int whole) {
    return mirror ? whole - at - extent : at;
  };
  RecipeForm::Frame frame{form_.canvas, 0, 0, {}};
  // x, y: the picture's position on the canvas after all flips; frame.x, frame.y: before them.
  const int x = mirrored(std::exchange(form_.flip_x_after, false), form_.range_x, form_.range.width,
                         form_.canvas.width);
  const int y = mirrored(std::exchange(form_.flip_y_after, false), form_.range_y,
                         form_.range.height, form_.canvas.height);
  frame.x = mirrored(form_.flip_x_before, x, form_.range.width, form_.canvas.width);
  frame.y = mirrored(form_.flip_y_before, y, form_.range.height, form_.canvas.height);
  for (size_t c = 0; c < form_.fill.size(); ++c)
    frame.fill[c] = static_cast<uint8_t>(form_.fill[c]);
  const Part across = outputs_of(filter, form_.canvas.width, to.width, x, x + form_.range.width);
  const Part down = outputs_of(filter, form_.canvas.height, to.height, y, y + form_.range.height);
  form_.frame = frame;
  form_.resize = RecipeForm::Resize{to, filter};
  form_.canvas = to;
  form_.range = {across.begin, down.begin, across.end - across.begin, down.end - down.begin};
  if (form_.range.width <= 0 || form_.range.height <= 0) form_.range = {0, 0, 0, 0};
  form_.range_x = form_.range.x;
  form_.range_y = form_.range.y;
  drop_empty_canvas();
}

bool Recipe::pad(int left, int top, int right, int bottom, std::span<const double> fill) {
  if (left == 0 && top == 0 && right == 0 && bottom == 0) return true;
  if (!form_.map->is_identity() || !form_.erased.empty()) return false;
  ChannelValues wanted{};
  std::copy_n(fill.begin(), std::min(fill.size(), wanted.size()), wanted.begin());
  if (form_.padded && wanted != form_.fill) return false;
  if (form_.flip_x_after) std::swap(left, right);
  if (form_.flip_y_after) std::swap(top, bottom);
  if (!form_.padded) form_.first_fill.reset();
  form_.padded = true;
  form_.fill = wanted;
  form_.canvas = {form_.canvas.height + top + bottom, form_.canvas.width + left + right};
  form_.range_x += left;
  form_.range_y += top;
  return true;
}

Recipe::End Recipe::take_end() {
  // After a pending pass, the flip before a resize is also the last operation if neither a resize
  // nor a border follows.
  const bool is_last = is_pending() && !form_.resized_or_padded();
  bool& flip = is_last ? form_.flip_x_before : form_.flip_x_after;
  End end{.flip = std::exchange(flip, false),
          .map = std::exchange(form_.map, PixelMap::identity(DType::kUInt8))};
  if (!form_.erased.empty()) end.erased = form_.erased.front();
  form_.erased.clear();
  std::shared_ptr<const QuickTable> table = form_.steps.last_table();
  if (!table) return end;
  if (form_.padded) {
    const auto fill = before_table(form_.fill, *table, channels());
    if (!fill) return end;
    form_.fill = *fill;
  }
  form_.steps.drop_last();
  end.table = std::move(table);
  return end;
}

std::optional<Recipe::Shown> Recipe::shown() const {
  if (!form_.padded || !form_.map->is_identity() || !form_.erased.empty() || form_.range.width == 0)
    return {};
  return Shown{
      unflipped_after({form_.range_x, form_.range_y, form_.range.width, form_.range.height}),
      form_.fill};
}

bool Recipe::compute(const PixelStep& step) {
  const int before = channels();
  const bool before_any = form_.steps.empty();
  PixelStep its = step;
  if (form_.map->input() != DType::kUInt8) its.table.reset();  // tables are for bytes only
  if (!form_.map->is_identity() || !form_.erased.empty() || !form_.steps.add(its)) return false;
  if (!form_.padded) return true;
  if (before_any && form_.map->input() == DType::kUInt8) form_.first_fill = bytes_of(form_.fill);
  PixelSteps alone;
  alone.add(its);
  form_.fill = alone.of_pixel(form_.fill, form_.map->input(), before);
  return true;
}

bool Recipe::map(const MapStep& step) {
  const PixelMap* const map = form_.map->then(step);
  if (!form_.erased.empty() && map != form_.map) return false;
  form_.map = map;
  return true;
}

Size RecipeForm::oriented() const {
  return transpose ? Size{window.width, window.height} : Size{window.height, window.width};
}

void Recipe::narrow(Window window) {
  const Size size = form_.oriented();
  if (form_.flip_x_before) window.x = size.width - window.x - window.width;
  if (form_.flip_y_before) window.y = size.height - window.y - window.height;
  if (form_.transpose) window = {window.y, window.x, window.height, window.width};
  form_.window = {form_.window.x + window.x, form_.window.y + window.y, window.width,
                  window.height};
}

void Recipe::take_all() {
  form_.canvas = form_.resize ? form_.resize->to : form_.oriented();
  form_.range = {0, 0, form_.canvas.width, form_.canvas.height};
  form_.range_x = form_.range_y = 0;
}

Window Recipe::unflipped_after(Window window) const {
  if (form_.flip_x_after) window.x = form_.canvas.width - window.x - window.width;
  if (form_.flip_y_after) window.y = form_.canvas.height - window.y - window.height;
  return window;
}

// A crop may have removed all borders; then a resize may follow, and flips need not be deferred.
void Recipe::drop_empty_canvas() {
  if (form_.canvas != Size{form_.range.height, form_.range.width}) return;
  form_.padded = false;
  form_.fill = {};
  form_.first_fill.reset();
  if (form_.resize) return;
  form_.flip_x_before ^= std::exchange(form_.flip_x_after, false);
  form_.flip_y_before ^= std::exchange(form_.flip_y_after, false);
}

}  // namespace headrace
