// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/recipe_edit.h"

#include <algorithm>
#include <iterator>

namespace headrace {
namespace {

// One axis of a recipe without a resize: `shown` pixels of the source's window, starting at `part`,
// are at `at` and after it in a result of `size` pixels.
struct Axis {
  int source = 0;  // number of pixels
  int window = 0, window_size = 0, part = 0, shown = 0, at = 0, size = 0;
  bool flip = false;  // of the window, before it is placed
};

// The lowest coordinate of the source in the result, mirrored or not. None if a crop has removed
// pixels that a border added afterwards would show.
std::optional<int> first_place(const Axis& axis) {
  if (axis.shown <= 0) return axis.source;  // only border
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

}  // namespace

std::optional<RecipeEdit> edit_of(const Recipe& recipe, const Picture& source) {
  const RecipeForm& form = recipe.form();
  const auto* picture = std::get_if<std::shared_ptr<const Picture>>(&form.source);
  if (!picture || picture->get() != &source || form.resize || form.transpose ||
      !form.steps.empty() || form.erased.size() > 1 || form.has_noise() ||
      form.flip_y_before != form.flip_y_after) {
    return std::nullopt;
  }
  const Window &window = form.window, &range = form.range;
  const std::optional<int> left =
      first_place({source.width, window.x, window.width, range.x, range.width, form.range_x,
                   form.canvas.width, form.flip_x_before});
  const std::optional<int> top =
      first_place({source.height, window.y, window.height, range.y, range.height, form.range_y,
                   form.canvas.height, form.flip_y_before});
  if (!left || !top) return std::nullopt;
  RecipeEdit out{
      .edit = {.top = *top, .left = *left, .flip = form.flip_x_before != form.flip_x_after},
      .size = form.canvas,
      .map = form.map,
      .fill = form.fill,
      .is_filled = form.padded};
  if (!form.erased.empty()) note_cut(form.erased.front(), form.map->output(), out.edit);
  return out;
}

std::optional<RecipeEdit> take_end(Recipe& recipe, std::string_view& why_not) {
  const RecipeForm& form = recipe.form();
  why_not = form.map->input() != DType::kUInt8               ? "floats"
            : recipe.channels() > PictureBatch::kMaxChannels ? "more than four channels"
            : form.has_noise()                               ? "a rectangle of noise"
            : form.erased.size() > 1                         ? "several rectangles"
                                                             : "";
  if (!why_not.empty()) return std::nullopt;
  Recipe::End end = recipe.take_end();
  RecipeEdit out{.edit = {.flip = end.flip},
                 .size = form.canvas,
                 .map = end.map,
                 .fill = {},
                 .table = std::move(end.table)};
  if (end.erased) note_cut(*end.erased, end.map->output(), out.edit);
  return out;
}

}  // namespace headrace
