// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/render_lane.h"

#include <algorithm>

namespace headrace {

Window stored_part(const Window& window, const Window& needed, bool transpose) {
  if (transpose) return {window.x + needed.y, window.y + needed.x, needed.height, needed.width};
  return {window.x + needed.x, window.y + needed.y, needed.width, needed.height};
}

double decode_cost(const EncodedImage& source, const Window& window) {
  const bool enters = source.codec->enters_rows || !source.row_index.known.empty();
  const double rows = enters ? window.height : window.y + window.height;
  return rows * source.header.width + double(window.width) * window.height;
}

bool RenderLane::begin(RenderTask& its_task, const PassJob& its_job) {
  const Recipe& recipe = *its_task.recipe;
  const RecipeForm& form = recipe.form();
  const EncodedImage& source = std::get<EncodedImage>(form.source);
  task = &its_task;
  lacks_alpha = source.color == ColorMode::kRGBA && source.codec->opaque;
  is_wide = source.sample != DType::kUInt8;
  transposed = form.transpose && !is_wide;
  if (is_wide) {
    job = its_job;
    part = form.window;
    wide.begin(job.channels, part.width, part.height, source.sample);
  } else {
    const Window needed = begin_rows(recipe, its_job);
    if (needed.width == 0) {
      finish();
      return false;
    }
    part = stored_part(form.window, needed, form.transpose);
  }
  if (transposed) window.begin(form.source_channels(), part.width, part.height);
  cost = decode_cost(source, part);
  return true;
}

Window RenderLane::begin_rows(const Recipe& recipe, const PassJob& its_job) {
  job = its_job;
  pass.begin(job);
  framed = recipe.form().frame.has_value();
  if (!framed) return pass.needed();
  const RecipeForm::Frame& border = *recipe.form().frame;
  const Size size = recipe.form().oriented();
  frame.begin(pass, pass.needed(), {border.x, border.y, size.width, size.height}, job.channels,
              border.fill);
  return frame.needed();
}

}  // namespace headrace
