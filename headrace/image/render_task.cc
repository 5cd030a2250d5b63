// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/render_task.h"

#include "headrace/image/collage.h"
#include "headrace/image/pending_picture.h"
#include "headrace/image/row_sinks.h"
#include "headrace/image/warp_pass.h"
#include "headrace/image/wide_pass.h"

namespace headrace {
namespace {

// Pictures of this size and more are stored past the caches, because a few of them fill a cache.
constexpr size_t kStreamBytes = 256 << 10;

// All of it; tiles are decoded in parallel lanes.
size_t painting_bytes(const Collage& collage) {
  size_t bytes = canvas_bytes(collage);
  for (const Collage::Tile& tile : collage.tiles) bytes += working_bytes(tile.picture);
  return bytes;
}

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

size_t working_bytes(const Recipe& recipe) {
  const RecipeForm& form = recipe.form();
  if (std::holds_alternative<std::monostate>(form.source)) return 0;  // a field without pixels
  const PassJob job = pass_job(recipe, {});
  if (job.range.width == 0 || job.range.height == 0) return 0;
  size_t bytes = FusedPass::working_bytes(job);
  if (form.frame) bytes += FramedRows::working_bytes(job.channels, job.width);
  if (form.transpose) bytes += WindowBuffer::working_bytes(job.channels, job.width, job.height);
  if (const auto* encoded = std::get_if<EncodedImage>(&form.source)) {
    if (encoded->sample == DType::kUInt8) return bytes + encoded->header.working_bytes;
    const size_t pixels = size_t(form.window.width) * size_t(form.window.height);
    return WidePass::working_bytes(job) + encoded->header.working_bytes +
           pixels * size_t(job.channels) * size_of(encoded->sample);
  }
  if (const auto* pending = std::get_if<std::shared_ptr<const PendingPicture>>(&form.source)) {
    const Recipe& from = (*pending)->from;
    const Size size = from.size();
    const size_t pixels = size_t(size.height) * size_t(size.width) * size_t(from.channels());
    return bytes + working_bytes(from) + 2 * pixels;
  }
  if (const auto* warped = std::get_if<std::shared_ptr<const WarpedPicture>>(&form.source)) {
    if (needs_generic_warp(**warped)) {
      const Size to = (*warped)->warp.to;
      const size_t made = size_t(to.height) * size_t(to.width) * size_t(source_channels(**warped)) *
                          size_of(dtype_of(**warped));
      return made + (dtype_of(**warped) == DType::kUInt8 ? bytes : WidePass::working_bytes(job));
    }
    bytes += WarpPass::working_bytes(**warped);
    return (*warped)->collage ? bytes + painting_bytes(*(*warped)->collage) : bytes;
  }
  if (const auto* collage = std::get_if<std::shared_ptr<const Collage>>(&form.source)) {
    return bytes + painting_bytes(**collage);
  }
  const auto* picture = std::get_if<std::shared_ptr<const Picture>>(&form.source);
  if (picture && (*picture)->dtype != DType::kUInt8) return WidePass::working_bytes(job);
  return bytes;
}

size_t source_bytes(const Recipe& recipe) {
  const RecipeForm& form = recipe.form();
  if (const auto* encoded = std::get_if<EncodedImage>(&form.source)) {
    return size_t(encoded->header.height) * size_t(encoded->header.width) *
           size_t(form.source_channels()) * size_of(encoded->sample);
  }
  if (const auto* warped = std::get_if<std::shared_ptr<const WarpedPicture>>(&form.source)) {
    const Size size = source_size(**warped);
    return size_t(size.height) * size_t(size.width) * size_t(source_channels(**warped)) *
           size_of(dtype_of(**warped));
  }
  if (const auto* collage = std::get_if<std::shared_ptr<const Collage>>(&form.source)) {
    return canvas_bytes(**collage);
  }
  if (const auto* pending = std::get_if<std::shared_ptr<const PendingPicture>>(&form.source)) {
    return source_bytes((*pending)->from);
  }
  const auto* picture = std::get_if<std::shared_ptr<const Picture>>(&form.source);
  return picture ? (*picture)->pixels.size() : 0;
}

}  // namespace headrace
