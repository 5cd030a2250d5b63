// SPDX-License-Identifier: Apache-2.0
// Recipes rendered because their pixels are needed: the result begins a new recipe.
#include <cassert>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "headrace/image/collage.h"
#include "headrace/image/pending_picture.h"
#include "headrace/image/render.h"
#include "headrace/image/render_task.h"

namespace headrace {
namespace {

const ErrorCode kResultTooLarge{
    "HR0127", ErrorKind::kResource, "upscaled image exceeds the memory limit",
    "A transform that needs pixels follows a transform that greatly enlarged the image, and the "
    "enlarged image would exceed one record's share of memory_limit. Nothing was allocated. Use a "
    "smaller Resize or Pad, crop after it, or raise memory_limit."};

std::shared_ptr<Picture> picture_for(const Recipe& recipe) {
  const Size size = recipe.size();
  return std::make_shared<Picture>(recipe.channels(), size.height, size.width, recipe.dtype());
}

RenderTask task_for(const Recipe& recipe, Picture& into) {
  return {.recipe = &recipe, .target = {.data = into.pixels.data(), .batch = false}, .result = {}};
}

}  // namespace

Result<void> Renderer::check_growth(size_t before, size_t after) const {
  if (after <= largest_picture_ || after / 2 <= before) return {};
  return Error{.code = &kResultTooLarge,
               .what = "an image of " + std::to_string(before) + " bytes would take " +
                       std::to_string(after)};
}

// The same as if the step had been done immediately.
Result<void> Renderer::do_pending(Recipe& recipe) {
  const auto pending = std::get<std::shared_ptr<const PendingPicture>>(recipe.form().source);
  Recipe from = pending->from;
  if (Result<void> made = materialize(from); !made) return made;
  Recipe outcome = pending->pass.function->apply(pending->pass, from.pixels());
  if (recipe.replace_pending(outcome)) return {};
  if (Result<void> made = materialize(outcome); !made) return made;
  [[maybe_unused]] const bool replaced = recipe.replace_pending(outcome);  // has no steps now
  assert(replaced);
  return {};
}

Result<void> Renderer::materialize(Recipe& recipe) {
  if (recipe.pixels()) return {};
  const Size size = recipe.size();
  const size_t after = size_t(size.height) * size_t(size.width) * size_t(recipe.channels()) *
                       size_of(recipe.dtype());
  if (Result<void> fits = check_growth(source_bytes(recipe), after); !fits) return fits;
  if (requests_ && lanes(recipe) > 1) {
    std::vector<Recipe>& pictures = requests_->pictures;
    if (requests_->answered == pictures.size()) {
      pictures.push_back(recipe);
      requests_->waits = true;
      return Error{};
    }
    recipe = pictures[requests_->answered++];
    if (recipe.pixels()) return {};  // else it could not be decoded: its error is reported here
  }
  const std::shared_ptr<Picture> picture = picture_for(recipe);
  RenderTask task = task_for(recipe, *picture);
  render({&task, 1});
  if (!task.result) return std::move(task.result);
  recipe = Recipe(picture);
  return {};
}

Result<void> Renderer::materialize_shown(Recipe& recipe) {
  const std::optional<Recipe::Shown> shown = recipe.shown();
  if (!shown) return materialize(recipe);
  const Size size = recipe.size();
  const Window& part = shown->window;
  Recipe inner = recipe;
  [[maybe_unused]] bool held = inner.crop(part);
  assert(held);
  if (Result<void> made = materialize(inner); !made) return made;
  recipe = std::move(inner);
  held = recipe.pad(part.x, part.y, size.width - part.x - part.width,
                    size.height - part.y - part.height,
                    std::span(shown->fill).first(size_t(recipe.channels())));
  assert(held);
  return {};
}

void Renderer::materialize(std::span<Recipe* const> recipes) {
  std::vector<std::shared_ptr<Picture>> pictures;
  std::vector<RenderTask> tasks;
  for (const Recipe* recipe : recipes) {
    pictures.push_back(picture_for(*recipe));
    tasks.push_back(task_for(*recipe, *pictures.back()));
  }
  render(tasks);
  for (size_t i = 0; i < recipes.size(); ++i) {
    if (tasks[i].result) *recipes[i] = Recipe(std::move(pictures[i]));
  }
}

void Renderer::materialize_views(std::vector<Recipe*> views) {
  std::erase_if(views, [&](const Recipe* view) { return lanes(*view) == 0; });
  if (views.size() < 2) return;
  if (!requests_ || lanes(*views[0]) < 2) return materialize(views);
  std::vector<Recipe>& pictures = requests_->pictures;
  if (pictures.empty()) {
    for (const Recipe* view : views) pictures.push_back(*view);
    requests_->waits = true;
    return;
  }
  for (size_t i = 0; i < views.size(); ++i) *views[i] = std::move(pictures[i]);
  requests_->clear();
}

}  // namespace headrace
