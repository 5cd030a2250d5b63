// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/recipe_edit.h"

#include <algorithm>
#include <iterator>

namespace headrace {
namespace {

// One axis of a recipe without a resize: `shown` places from `part` on of the source's window are
// shown from place `at` on of an outcome of `size` places.
struct Axis {
  int source = 0;  // places that there are
  int window = 0, window_size = 0, part = 0, shown = 0, at = 0, size = 0;
  bool flip = false;  // of the window, before it is placed
};

// The lowest place of the source on the outcome, mirrored or not. Nothing where a crop has cut off
// what would be shown in a border that was added afterwards.
std::optional<int> first_place(const Axis& axis) {
  if (axis.shown <= 0) return axis.source;  // border alone
  const int first = axis.flip ? axis.window + axis.window_size - axis.part + axis.at - axis.size
                              : axis.window + axis.part - axis.at;
  const int shown =
      axis.flip ? axis.window + axis.window_size - axis.part - axis.shown : axis.window + axis.part;
  const int end = first + axis.size, shown_end = shown + axis.shown;
  const bool same = std::max(first, 0) == std::max(first, shown) &&
                    std::min(end, axis.source) == std::min(end, shown_end);
  return same ? std::optional(first) : std::nullopt;
}

// The rectangle that is set to one value per channel, after the map has converted everything else
// to `dtype`.
void note_cut(const Erased& erased, DType dtype, PictureEdit& edit) {
  const Window& cut = erased.window;
  edit.cut_top = cut.y;
  edit.cut_left = cut.x;
  edit.cut_bottom = cut.y + cut.height;
  edit.cut_right = cut.x + cut.width;
  for (size_t c = 0; c < std::size(edit.cut); ++c) {
    store_value(erased.values[c], dtype, &edit.cut[c]);
  }
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

std::optional<RecipeEdit> edit_of(const Recipe& recipe, const Picture& source) {
  const auto* picture = std::get_if<std::shared_ptr<const Picture>>(&recipe.source_);
  if (!picture || picture->get() != &source || recipe.resize_ || recipe.transpose_ ||
      !recipe.steps_.empty() || recipe.erased_.size() > 1 || recipe.has_noise() ||
      recipe.flip_y_before_ != recipe.flip_y_after_) {
    return std::nullopt;
  }
  const Window &window = recipe.window_, &range = recipe.range_;
  const std::optional<int> left =
      first_place({source.width, window.x, window.width, range.x, range.width, recipe.range_x_,
                   recipe.canvas_.width, recipe.flip_x_before_});
  const std::optional<int> top =
      first_place({source.height, window.y, window.height, range.y, range.height, recipe.range_y_,
                   recipe.canvas_.height, recipe.flip_y_before_});
  if (!left || !top) return std::nullopt;
  RecipeEdit out{
      .edit = {.top = *top, .left = *left, .flip = recipe.flip_x_before_ != recipe.flip_x_after_},
      .size = recipe.canvas_,
      .map = recipe.map_,
      .fill = recipe.fill_,
      .is_filled = recipe.padded_};
  if (!recipe.erased_.empty()) note_cut(recipe.erased_.front(), recipe.map_->output(), out.edit);
  return out;
}

std::optional<RecipeEdit> take_end(Recipe& recipe, std::string_view& why_not) {
  why_not = recipe.map_->input() != DType::kUInt8             ? "floats"
            : recipe.channels() > PictureBatch::kMostChannels ? "more than four channels"
            : recipe.has_noise()                              ? "a rectangle of noise"
            : recipe.erased_.size() > 1                       ? "several rectangles"
                                                              : "";
  if (!why_not.empty()) return std::nullopt;
  // After a pass over pixels a flip is the last step, too, where no border follows.
  const bool is_last = recipe.is_pending() && !recipe.resized_or_padded();
  bool& last_flip = is_last ? recipe.flip_x_before_ : recipe.flip_x_after_;
  RecipeEdit out{
      .edit = {.flip = last_flip}, .size = recipe.canvas_, .map = recipe.map_, .fill = {}};
  if (!recipe.erased_.empty()) note_cut(recipe.erased_.front(), recipe.map_->output(), out.edit);
  last_flip = false;
  recipe.map_ = PixelMap::identity(DType::kUInt8);
  recipe.erased_.clear();
  const std::shared_ptr<const QuickTable> table = recipe.steps_.last_table();
  if (!table) return out;
  if (recipe.padded_) {
    const auto fill = before_table(recipe.fill_, *table, recipe.channels());
    if (!fill) return out;
    recipe.fill_ = *fill;
  }
  recipe.steps_.drop_last();
  out.table = table;
  return out;
}

}  // namespace headrace
