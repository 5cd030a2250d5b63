// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/coded_window.h"

#include <algorithm>

#include "headrace/kernels/resample/resample.h"

namespace headrace {
namespace {

struct Inputs {
  int begin = 0, end = 0;
};

// The inputs of outputs [begin, end) of a resized axis.
Inputs inputs_of(Filter filter, int input, int output, int begin, int end) {
  if (input == output) return {begin, end};
  if (is_nearest(filter)) {
    const std::vector<int32_t> samples = nearest_samples(filter, input, output);
    const auto [low, high] =
        std::minmax_element(samples.begin() + begin, samples.begin() + end);  // they rise
    return {*low, *high + 1};
  }
  const FilterScale scale(filter, input, output);
  const FilterSpan first = scale.span(begin), last = scale.span(end - 1);
  return {first.first, last.first + last.count};
}

Inputs mirrored(const Inputs& inputs, int size) { return {size - inputs.end, size - inputs.begin}; }

// The part of the stored picture that the result depends on.
Window looked_at(const CodedWindow& coded) {
  const Window& source = coded.source;
  if (coded.shown.empty()) return {source.x, source.y, 1, 1};  // a decoder is asked for something
  const Size turned =
      coded.transpose ? Size{source.width, source.height} : Size{source.height, source.width};
  const Window& shown = coded.shown;
  Inputs across =
      inputs_of(coded.filter, turned.width, coded.resized.width, shown.x, shown.x + shown.width);
  Inputs down =
      inputs_of(coded.filter, turned.height, coded.resized.height, shown.y, shown.y + shown.height);
  if (coded.flip_x) across = mirrored(across, turned.width);
  if (coded.flip_y) down = mirrored(down, turned.height);
  if (coded.transpose) std::swap(across, down);
  return {source.x + across.begin, source.y + down.begin, across.end - across.begin,
          down.end - down.begin};
}

}  // namespace

std::optional<NotCoded> refusal_of(const EncodedPicture* picture) {
  if (!picture) return NotCoded::kPixels;
  const bool plain = !picture->strict && picture->page == 0 && picture->sample == DType::kUInt8;
  if (!plain || picture->color == ColorMode::kRGBA) return NotCoded::kForm;
  return std::nullopt;
}

ResizeWindow CodedWindow::resize(int64_t first, int64_t row, int64_t channel) const {
  ResizeWindow out{.from = first + (source.y - decoded.y) * row + (source.x - decoded.x),
                   .strides = {.row = row, .column = 1, .channel = channel},
                   .height = source.height,
                   .width = source.width,
                   .flip = mirrored,
                   .upside_down = upside_down,
                   .to_height = resized.height,
                   .to_width = resized.width,
                   .top = shown.y,
                   .left = shown.x,
                   .shown_height = shown.height,
                   .shown_width = shown.width,
                   .at_top = at_top,
                   .at_left = at_left,
                   .border_alone = shown.empty(),
                   .fill = fill};
  if (transpose) {
    std::swap(out.height, out.width);
    std::swap(out.strides.row, out.strides.column);
  }
  if (flip_x) {
    out.from += (out.width - 1) * out.strides.column;
    out.strides.column = -out.strides.column;
  }
  if (flip_y) {
    out.from += (out.height - 1) * out.strides.row;
    out.strides.row = -out.strides.row;
  }
  return out;
}

std::optional<CodedWindow> coded_window_of(const Recipe& recipe, NotCoded& why_not,
                                           bool before_steps) {
  const auto* picture = std::get_if<EncodedPicture>(&recipe.source_);
  std::optional<NotCoded> refusal = refusal_of(picture);
  const bool has_steps = !recipe.steps_.empty();
  // A border that was added after the steps has their colors already.
  const bool border_after = has_steps && recipe.padded_ && !recipe.first_fill_;
  if (!refusal && ((has_steps && !before_steps) || border_after || !recipe.map_->is_identity())) {
    refusal = NotCoded::kColors;
  }
  if (!refusal && !recipe.erased_.empty()) refusal = NotCoded::kRectangles;
  if (!refusal && recipe.frame_) refusal = NotCoded::kResizedBorder;
  if (refusal) {
    why_not = *refusal;
    return std::nullopt;
  }
  const Window& shown = recipe.range_;
  const auto place = [](bool flip, int at, int extent, int whole) {
    return flip ? whole - at - extent : at;
  };
  CodedWindow out{
      .picture = *picture,
      .decoded = {},
      .source = recipe.window_,
      .transpose = recipe.transpose_,
      .flip_x = recipe.flip_x_before_,
      .flip_y = recipe.flip_y_before_,
      .resized = recipe.oriented(),
      .shown = shown,
      .mirrored = recipe.flip_x_after_,
      .upside_down = recipe.flip_y_after_,
      .at_top = place(recipe.flip_y_after_, recipe.range_y_, shown.height, recipe.canvas_.height),
      .at_left = place(recipe.flip_x_after_, recipe.range_x_, shown.width, recipe.canvas_.width)};
  for (size_t c = 0; c < out.fill.size(); ++c) out.fill[c] = static_cast<uint8_t>(recipe.fill_[c]);
  if (has_steps && recipe.padded_) out.fill = *recipe.first_fill_;
  if (recipe.resize_) {
    out.filter = recipe.resize_->filter;
    out.resized = recipe.resize_->to;
  }
  if (std::max({out.resized.height, out.resized.width, recipe.canvas_.height,
                recipe.canvas_.width}) > kMostResizedSide) {
    why_not = NotCoded::kTooLarge;
    return std::nullopt;
  }
  out.decoded = looked_at(out);
  return out;
}

}  // namespace headrace
