// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/coded_program.h"

#include <algorithm>
#include <utility>

namespace headrace {
namespace {

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
  if (out.stages.size() > CodedProgram::kMostStages) {
    why_not = NotCoded::kColors;
    return std::nullopt;
  }
  return out;
}

}  // namespace headrace
