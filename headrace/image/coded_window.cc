// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/coded_window.h"

#include <algorithm>
#include <utility>

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
        std::minmax_element(samples.begin() + begin, samples.begin() + end);  // they are ascending
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
  if (coded.shown.empty()) return {source.x, source.y, 1, 1};  // a decoder needs a nonempty window
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

// Steps that change the number of channels are done on the CPU.
bool keeps_channels(const PixelSteps& steps, int channels) {
  return std::ranges::all_of(steps.all(), [&](const PixelStep& step) {
    return step.function->channels(step, channels) == channels;
  });
}

void add_steps(std::vector<CodedStage>& stages, const PixelSteps& steps) {
  if (steps.empty()) return;
  if (stages.empty() || stages.back().moved) stages.emplace_back();
  stages.back().steps = steps;
}

void add_pass(std::vector<CodedStage>& stages, const PendingPass& pass) {
  if (is_measured(pass.function->code)) {
    stages.push_back({.measured = pass});
    return;
  }
  if (stages.empty() || stages.back().moved) stages.emplace_back();
  stages.back().moved = pass;
}

}  // namespace

std::optional<NotCoded> refusal_of(const EncodedImage* picture) {
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
  const RecipeForm& form = recipe.form();
  const auto* picture = recipe.encoded();
  std::optional<NotCoded> refusal = refusal_of(picture);
  const bool has_steps = !form.steps.empty();
  // A border that was added after the steps has their colors already.
  const bool border_after = has_steps && form.padded && !form.first_fill;
  if (!refusal && ((has_steps && !before_steps) || border_after || !form.map->is_identity())) {
    refusal = NotCoded::kColors;
  }
  if (!refusal && !form.erased.empty()) refusal = NotCoded::kRectangles;
  if (!refusal && form.frame) refusal = NotCoded::kResizedBorder;
  if (refusal) {
    why_not = *refusal;
    return std::nullopt;
  }
  const Window& shown = form.range;
  const auto place = [](bool flip, int at, int extent, int whole) {
    return flip ? whole - at - extent : at;
  };
  CodedWindow out{
      .picture = *picture,
      .decoded = {},
      .source = form.window,
      .transpose = form.transpose,
      .flip_x = form.flip_x_before,
      .flip_y = form.flip_y_before,
      .resized = form.oriented(),
      .shown = shown,
      .mirrored = form.flip_x_after,
      .upside_down = form.flip_y_after,
      .at_top = place(form.flip_y_after, form.range_y, shown.height, form.canvas.height),
      .at_left = place(form.flip_x_after, form.range_x, shown.width, form.canvas.width)};
  for (size_t c = 0; c < out.fill.size(); ++c) out.fill[c] = static_cast<uint8_t>(form.fill[c]);
  if (has_steps && form.padded) out.fill = *form.first_fill;
  if (form.resize) {
    out.filter = form.resize->filter;
    out.resized = form.resize->to;
  }
  if (std::max({out.resized.height, out.resized.width, form.canvas.height, form.canvas.width}) >
      kMaxResizedSide) {
    why_not = NotCoded::kTooLarge;
    return std::nullopt;
  }
  out.decoded = looked_at(out);
  return out;
}

std::optional<CodedProgram> coded_program_of(const Recipe& recipe, NotCoded& why_not) {
  if (!recipe.form().steps.are_coded() ||
      !keeps_channels(recipe.form().steps, recipe.form().source_channels())) {
    why_not = NotCoded::kColors;
    return std::nullopt;
  }
  CodedProgram out;
  if (!recipe.is_pending()) {
    std::optional<CodedWindow> window = coded_window_of(recipe, why_not, /*before_steps=*/true);
    if (!window) return std::nullopt;
    out.window = std::move(*window);
  } else {
    const PendingPicture* const picture = recipe.pending_in_place();
    const bool same_size = picture && picture->from.size() == picture->size;
    if (!same_size || !recipe.form().map->is_identity() || !recipe.form().erased.empty()) {
      why_not = NotCoded::kPixels;
      return std::nullopt;
    }
    std::optional<CodedProgram> before = coded_program_of(picture->from, why_not);
    if (!before) return std::nullopt;
    out = std::move(*before);
    add_pass(out.stages, picture->pass);
  }
  add_steps(out.stages, recipe.form().steps);
  if (out.stages.size() > CodedProgram::kMaxStages) {
    why_not = NotCoded::kColors;
    return std::nullopt;
  }
  return out;
}

}  // namespace headrace
