// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/render.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "headrace/image/collage.h"
#include "headrace/image/pending_picture.h"
#include "headrace/image/shared_decodes.h"
#include "headrace/image/warp_pass.h"

namespace headrace {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

struct Renderer::Scratch {
  SharedDecodes decodes;
  std::vector<DecodeJob> jobs;  // of these
  WarpPass warp;
  Picture canvas;            // a part of a collage
  size_t decoder_bytes = 0;  // the maximum memory of a decoder so far
};

Renderer::Renderer() : scratch_(std::make_unique<Scratch>()) {}
Renderer::~Renderer() = default;

ImageDecoder& Renderer::decoder(const CodecRecord& codec) {
  std::unique_ptr<ImageDecoder>& decoder = decoders_[&codec];
  if (!decoder) decoder = codec.make();
  return *decoder;
}

int Renderer::lanes(const Recipe& recipe) {
  const auto* const encoded = std::get_if<EncodedImage>(&recipe.form().source);
  return encoded ? decoder(*encoded->codec).lanes() : 0;
}

void Renderer::render(std::span<RenderTask> tasks) {
  SharedDecodes& decodes = scratch_->decodes;
  decodes.clear();  // an exception may have ended the last call
  const CodecRecord* codec = nullptr;
  const auto decode_all = [&] {
    if (!decodes.all().empty()) decode_shared(*codec);
    decodes.clear();
  };
  for (RenderTask& task : tasks) {
    const Recipe& recipe = *task.recipe;
    if (recipe.is_pending()) {
      decode_all();  // the operations before the pass use the lanes
      render_pending(task);
      continue;
    }
    const PassJob job = pass_job(recipe, task.target);
    task.result = {};
    task.warnings = 0;
    if (task.target.border) store_fill(job);
    if (job.range.width == 0 || job.range.height == 0) continue;
    const auto& source = recipe.form().source;
    if (const auto* picture = std::get_if<std::shared_ptr<const Picture>>(&source)) {
      const Window all{0, 0, (*picture)->width, (*picture)->height};
      render_picture(decodes.free_lane(), recipe, **picture, all, job);
      continue;
    }
    if (recipe.is_derived()) {
      decode_all();  // its inputs use the lanes
      if (const auto* warped = std::get_if<std::shared_ptr<const WarpedPicture>>(&source)) {
        render_warped(task, **warped, job);
      } else {
        render_collage(task, *std::get<std::shared_ptr<const Collage>>(source), job);
      }
      continue;
    }
    const EncodedImage& encoded = std::get<EncodedImage>(source);
    if (encoded.codec != codec || !decodes.takes(recipe, decoder(*codec).lanes())) decode_all();
    codec = encoded.codec;
    if (!decodes.add(task, job)) continue;
    scratch_->decoder_bytes = std::max(scratch_->decoder_bytes, encoded.header.working_bytes);
  }
  decode_all();
  finish_streaming();
  for (const RenderTask& task : tasks) {
    const Recipe& recipe = *task.recipe;
    if (recipe.is_pending()) continue;  // rendered with its rectangles
    const Size size = recipe.size();
    for (const Erased& erased : recipe.form().erased) {
      store_erased(erased, recipe.channels(), size.height, size.width, recipe.dtype(),
                   task.target.format == MemoryFormat::kChannelsLast, task.target.data);
    }
  }
}

void Renderer::render_pending(RenderTask& task) {
  Recipe recipe = *task.recipe;
  task.warnings = 0;
  task.result = do_pending(recipe);
  if (!task.result) return;
  RenderTask done{.recipe = &recipe, .target = task.target, .result = {}};
  render({&done, 1});
  task.result = std::move(done.result);
  task.warnings = done.warnings;
}

void Renderer::decode_shared(const CodecRecord& codec) {
  const Clock::time_point start = Clock::now();
  const std::span<SharedDecode> decodes = scratch_->decodes.all();
  std::vector<DecodeJob>& jobs = scratch_->jobs;
  jobs.clear();
  for (SharedDecode& decode : decodes) jobs.push_back(decode.job());
  decoder(codec).decode(jobs);
  for (size_t i = 0; i < decodes.size(); ++i) {
    const std::vector<RenderLane*>& views = decodes[i].views;
    if (views.size() > 1 && (!jobs[i].result || jobs[i].warnings > 0)) {
      for (RenderLane* view : views) decode_alone(codec, *view);
    } else {
      for (RenderLane* view : views) finish_lane(*view, jobs[i]);
    }
  }
  const double before = counted_seconds();
  for (const SharedDecode& decode : decodes) {
    for (RenderLane* lane : decode.views) take_seconds(lane->pass);
  }
  const double rest = seconds_since(start) - (counted_seconds() - before);
  seconds_.entropy += std::max(rest, 0.0);
}

void Renderer::decode_alone(const CodecRecord& codec, RenderLane& lane) {
  lane.begin(*lane.task, PassJob(lane.job));
  SharedDecode alone;
  alone.views.assign(1, &lane);
  alone.window = lane.part;
  DecodeJob job = alone.job();
  decoder(codec).decode({&job, 1});
  finish_lane(lane, job);
}

void Renderer::finish_lane(RenderLane& lane, DecodeJob& job) {
  lane.task->warnings = job.warnings;
  if (!job.result) {
    lane.task->result = std::move(job.result);
    return;
  }
  if (job.warnings > 0) ++remarks_.repaired;
  if (lane.is_wide) return render_kept(lane);
  if (lane.transposed) lane.upright().rows(lane.window.transposed());
  lane.finish();
}

void Renderer::render_kept(RenderLane& lane) {
  const Clock::time_point start = Clock::now();
  const Picture& picture = lane.wide.picture();
  const Window all{0, 0, picture.width, picture.height};
  lane.wide_pass.run(picture, all, lane.task->recipe->form().transpose, lane.job);
  // Whole pictures: a large one must not stay in memory together with the next record's.
  constexpr size_t kKept = size_t{1} << 20;
  if (lane.wide.held_bytes() > kKept) lane.wide.free();
  if (lane.wide_pass.held_bytes() > kKept) lane.wide_pass.free();
  seconds_.resample += seconds_since(start);
}

void Renderer::render_picture(RenderLane& lane, const Recipe& recipe, const Picture& picture,
                              const Window& window, const PassJob& job) {
  if (picture.dtype != DType::kUInt8) {
    const Clock::time_point start = Clock::now();
    lane.wide_pass.run(picture, seen_from(window.x, window.y, recipe.form().window),
                       recipe.form().transpose, job);
    seconds_.resample += seconds_since(start);
    return;
  }
  FusedPass& pass = lane.pass;
  const Window needed = lane.begin_rows(recipe, job);
  if (needed.width == 0) return lane.finish();
  const Window part = stored_part(recipe.form().window, needed, recipe.form().transpose);
  RowBlock block{.count = part.height, .stride = picture.width};
  for (int c = 0; c < picture.channels; ++c) {
    block.channel[c] =
        picture.plane(c) + size_t(part.y - window.y) * picture.width + (part.x - window.x);
  }
  if (recipe.form().transpose) {
    lane.window.begin(picture.channels, part.width, part.height);
    lane.window.rows(block);
    block = lane.window.transposed();
  }
  lane.upright().rows(block);
  lane.finish();
  take_seconds(pass);
}

Result<const Picture*> Renderer::paint(const Collage& collage, const Window& part, int& warnings) {
  Picture& canvas = scratch_->canvas;
  canvas.channels = collage.channels;
  canvas.height = part.height;
  canvas.width = part.width;
  canvas.pixels.resize(size_t(collage.channels) * canvas.plane_bytes());
  for (int c = 0; c < canvas.channels; ++c) {
    std::memset(canvas.plane(c), static_cast<int>(collage.fill[size_t(c)]), canvas.plane_bytes());
  }
  std::vector<Recipe> shown;
  for (const Collage::Tile& tile : collage.tiles) {
    if (std::optional<Recipe> seen = shown_in(collage, tile, part)) shown.push_back(*seen);
  }
  std::vector<RenderTask> tasks;
  for (const Recipe& picture : shown) {
    tasks.push_back({.recipe = &picture,
                     .target = {.data = canvas.pixels.data(), .batch = false, .border = false},
                     .result = {}});
  }
  render(tasks);
  for (RenderTask& task : tasks) {
    if (!task.result) return std::move(task.result.error());
    warnings += task.warnings;
  }
  return &canvas;
}

void Renderer::render_collage(RenderTask& task, const Collage& collage, const PassJob& job) {
  const Recipe& recipe = *task.recipe;
  RenderLane& lane = scratch_->decodes.free_lane();
  const Window needed = lane.begin_rows(recipe, job);
  if (needed.width == 0) return lane.finish();
  const Window part = stored_part(recipe.form().window, needed, recipe.form().transpose);
  Result<const Picture*> painted = paint(collage, part, task.warnings);
  if (!painted) {
    task.result = std::move(painted.error());
    return;
  }
  render_picture(lane, recipe, **painted, part, job);
}

// The result's rows are made on demand, and go into the pass like a decoder's.
void Renderer::render_warped(RenderTask& task, const WarpedPicture& picture, const PassJob& job) {
  const Recipe& recipe = *task.recipe;
  RenderLane& lane = scratch_->decodes.free_lane();
  if (needs_generic_warp(picture)) {
    const Clock::time_point start = Clock::now();
    const Picture made = generic_warp(picture, recipe.form().window);
    seconds_.transform += seconds_since(start);
    return render_picture(lane, recipe, made, recipe.form().window, job);
  }
  const Window needed = lane.begin_rows(recipe, job);
  if (needed.width == 0) return lane.finish();
  const Window part = stored_part(recipe.form().window, needed, recipe.form().transpose);
  std::vector<WarpPatch> patches;
  ChannelValues fill{};
  const auto all_of = [](const Picture& whole) { return Window{0, 0, whole.width, whole.height}; };
  if (!picture.collage) {
    patches.push_back({picture.from.get(), all_of(*picture.from), 0, 0});
  } else if (auto ready = patches_of(*picture.collage)) {
    patches = std::move(*ready);
    fill = picture.collage->fill;
  } else {
    const Window window = window_read(picture, part);
    Result<const Picture*> painted = paint(*picture.collage, window, task.warnings);
    if (!painted) {
      task.result = std::move(painted.error());
      return;
    }
    patches.push_back({*painted, all_of(**painted), window.x, window.y});
    lane.begin_rows(recipe, job);  // painting has used the lane
  }
  const Clock::time_point start = Clock::now();
  const double before = counted_seconds();
  if (recipe.form().transpose) {
    lane.window.begin(recipe.form().source_channels(), part.width, part.height);
    scratch_->warp.run(picture, patches, fill, part, lane.window);
    lane.upright().rows(lane.window.transposed());
  } else {
    scratch_->warp.run(picture, patches, fill, part, lane.upright());
  }
  lane.finish();
  take_seconds(lane.pass);
  const double counted = counted_seconds() - before;
  seconds_.transform += std::max(seconds_since(start) - counted, 0.0);
}

double Renderer::counted_seconds() const {
  return seconds_.resample + seconds_.transform + seconds_.store;
}

void Renderer::take_seconds(FusedPass& pass) {
  seconds_.resample += pass.take_resample_seconds();
  seconds_.transform += pass.take_pixel_seconds();
  seconds_.store += pass.take_store_seconds();
}

void Renderer::trim(size_t keep_bytes) {
  if (held_bytes() <= keep_bytes) return;
  values_.trim(keep_bytes - std::min(keep_bytes, held_bytes() - values_.held_bytes()));
  if (held_bytes() <= keep_bytes) return;
  scratch_->decodes.free();
  scratch_->warp.free();
  fields_.free();
  values_.trim(0);
  scratch_->canvas.pixels.free();
  if (scratch_->decoder_bytes >
      keep_bytes) {  // decoders keep their scratch memory until they are destroyed
    decoders_.clear();
    scratch_->decoder_bytes = 0;
  }
}

size_t Renderer::held_bytes() const {
  return scratch_->decodes.held_bytes() + scratch_->decoder_bytes + scratch_->warp.held_bytes() +
         fields_.held_bytes() + values_.held_bytes() + scratch_->canvas.pixels.capacity();
}

}  // namespace headrace
