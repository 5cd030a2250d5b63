// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/render_task.h"

namespace headrace {
namespace {

// Pictures of this size and more are stored past the caches, because a few of them fill a cache.
constexpr size_t kStreamBytes = 256 << 10;

}  // namespace

PassJob pass_job(const Recipe& recipe, const RenderTarget& target) {
  const RecipeForm& form = recipe.form();
  PassJob job;
  job.channels = form.source_channels();
  job.width = form.transpose ? form.window.height : form.window.width;
  job.height = form.transpose ? form.window.width : form.window.height;
  job.flip_x_before = form.flip_x_before;
  job.flip_y_before = form.flip_y_before;
  if (form.frame) {
    job.width = form.frame->size.width;
    job.height = form.frame->size.height;
  }
  job.to_width = job.width;
  job.to_height = job.height;
  if (form.resize) {
    job.filter = form.resize->filter;
    job.to_width = form.resize->to.width;
    job.to_height = form.resize->to.height;
  }
  job.range = form.range;
  job.canvas_width = form.canvas.width;
  job.canvas_height = form.canvas.height;
  job.range_x = form.range_x;
  job.range_y = form.range_y;
  if (!form.steps.empty()) job.steps = &form.steps;
  job.stored_channels = recipe.channels();
  job.fill = form.fill;
  job.flip_x_after = form.flip_x_after;
  job.flip_y_after = form.flip_y_after;
  job.map = form.map;
  job.data = target.data;
  job.format = target.format;
  const size_t pixels = size_t(job.canvas_width) * job.canvas_height;
  job.stream =
      target.batch && pixels * job.stored_channels * size_of(recipe.dtype()) >= kStreamBytes;
  return job;
}

}  // namespace headrace
