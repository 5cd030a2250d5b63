// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/render.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "headrace/image/collage.h"
#include "headrace/image/pending_picture.h"
#include "headrace/image/row_sinks.h"
#include "headrace/image/warp_pass.h"
#include "headrace/image/wide_pass.h"
#include "headrace/image/wide_warp.h"

namespace headrace {
namespace {

using Clock = std::chrono::steady_clock;

// A picture of this size is streamed past the caches into its batch: some of them fill a cache.
constexpr size_t kStreamBytes = 256 << 10;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The part of the stored picture that holds `needed` of the oriented window.
Window stored_part(const Window& window, const Window& needed, bool transpose) {
  if (transpose) return {window.x + needed.y, window.y + needed.x, needed.height, needed.width};
  return {window.x + needed.x, window.y + needed.y, needed.width, needed.height};
}

// Passes that are fed concurrently; more of them would not stay in the cache.
constexpr size_t kMostPasses = 48;

// Cost of decoding a window, in fully decoded pixels: rows above it are entropy-decoded too, if its
// codec cannot begin below them; that is half of the work.
double cost_of(const EncodedPicture& source, const Window& window) {
  const bool enters = source.codec->enters_rows || !source.row_index.known.empty();
  const double rows = enters ? window.height : window.y + window.height;
  return rows * source.header.width + double(window.width) * window.height;
}

}  // namespace

// Working memory for one picture.
struct Renderer::Lane {
  FusedPass pass;
  FramedRows frame;  // where the picture is resized with a border
  bool framed = false;
  WindowBuffer window;  // where the axes are swapped
  bool transposed = false;
  WideRows wide;  // where samples are no bytes
  WidePass wide_pass;
  bool is_wide = false;
  OpaqueRows opaque;  // where alpha is wanted, and the codec has none
  bool lacks_alpha = false;
  RenderTask* task = nullptr;
  PassJob job;
  Window part;  // of the stored picture
  double cost = 0;

  // The part of the window, oriented, whose rows upright() must get; may be empty.
  Window begin(const Recipe& recipe, const PassJob& its_job) {
    job = its_job;
    pass.begin(job);
    framed = recipe.frame_.has_value();
    if (!framed) return pass.needed();
    const Recipe::Frame& border = *recipe.frame_;
    const Size size = recipe.oriented();
    frame.begin(pass, pass.needed(), {border.x, border.y, size.width, size.height}, job.channels,
                border.fill);
    return frame.needed();
  }
  RowSink& upright() { return framed ? static_cast<RowSink&>(frame) : pass; }
  RowSink& sink() {
    RowSink& rows = is_wide      ? static_cast<RowSink&>(wide)
                    : transposed ? static_cast<RowSink&>(window)
                                 : upright();
    if (!lacks_alpha) return rows;
    opaque.begin(rows);
    return opaque;
  }
  // A picture of which all is decoded first. The window is in the stored picture.
  void begin_wide(const PassJob& its_job, const Window& window, DType dtype) {
    job = its_job;
    part = window;
    wide.begin(job.channels, window.width, window.height, dtype);
  }
  size_t held_bytes() const {
    return pass.held_bytes() + frame.held_bytes() + window.held_bytes() + wide.held_bytes() +
           wide_pass.held_bytes() + opaque.held_bytes();
  }
  void free() {
    pass.free();
    frame.free();
    window.free();
    wide.free();
    wide_pass.free();
    opaque.free();
  }
  void finish() {
    if (framed) frame.finish();
  }
};

// A window to be decoded, and the tasks that need parts of it: Note [Views that share a decode].
struct Renderer::SharedDecode {
  std::vector<Lane*> views;
  Window window;
  double cost = 0;
  SharedRows rows;
};

struct Renderer::Scratch {
  std::vector<std::unique_ptr<Lane>> lanes;
  WarpPass warp;
  Picture canvas;  // a part of a collage
  std::vector<SharedDecode> decodes;
  size_t views = 0, windows = 0;  // of these, to be decoded together
  std::vector<DecodeJob> jobs;
  size_t decoder_bytes = 0;  // the most that a decoder was asked to hold
};

Renderer::Renderer() : scratch_(std::make_unique<Scratch>()) {}
Renderer::~Renderer() = default;

ImageDecoder& Renderer::decoder(const CodecRecord& codec) {
  std::unique_ptr<ImageDecoder>& decoder = decoders_[&codec];
  if (!decoder) decoder = codec.make();
  return *decoder;
}

Renderer::Lane& Renderer::lane(size_t number) {
  while (scratch_->lanes.size() <= number) scratch_->lanes.push_back(std::make_unique<Lane>());
  return *scratch_->lanes[number];
}

PassJob Renderer::job_of(const Recipe& recipe, const RenderTarget& target) {
  PassJob job;
  job.channels = recipe.source_channels();
  job.width = recipe.transpose_ ? recipe.window_.height : recipe.window_.width;
  job.height = recipe.transpose_ ? recipe.window_.width : recipe.window_.height;
  job.flip_x_before = recipe.flip_x_before_;
  job.flip_y_before = recipe.flip_y_before_;
  if (recipe.frame_) {
    job.width = recipe.frame_->size.width;
    job.height = recipe.frame_->size.height;
  }
  job.to_width = job.width;
  job.to_height = job.height;
  if (recipe.resize_) {
    job.filter = recipe.resize_->filter;
    job.to_width = recipe.resize_->to.width;
    job.to_height = recipe.resize_->to.height;
  }
  job.range = recipe.range_;
  job.canvas_width = recipe.canvas_.width;
  job.canvas_height = recipe.canvas_.height;
  job.range_x = recipe.range_x_;
  job.range_y = recipe.range_y_;
  if (!recipe.steps_.empty()) job.steps = &recipe.steps_;
  job.stored_channels = recipe.channels();
  job.fill = recipe.fill_;
  job.flip_x_after = recipe.flip_x_after_;
  job.flip_y_after = recipe.flip_y_after_;
  job.map = recipe.map_;
  job.data = target.data;
  job.format = target.format;
  const size_t pixels = size_t(job.canvas_width) * job.canvas_height;
  job.stream =
      target.batch && pixels * job.stored_channels * size_of(recipe.dtype()) >= kStreamBytes;
  return job;
}

int Renderer::lanes(const Recipe& recipe) {
  const auto* const encoded = std::get_if<EncodedPicture>(&recipe.source_);
  return encoded ? decoder(*encoded->codec).lanes() : 0;
}

void Renderer::render(std::span<RenderTask> tasks) {
  Scratch& scratch = *scratch_;
  const CodecRecord* codec = nullptr;
  const auto decode_group = [&] {
    if (scratch.windows) decode(*codec, {scratch.decodes.data(), scratch.windows});
    scratch.views = scratch.windows = 0;
  };
  for (RenderTask& task : tasks) {
    const Recipe& recipe = *task.recipe;
    if (recipe.is_pending()) {
      decode_group();  // lanes are used for what comes before the pass
      render_pending(task);
      continue;
    }
    const PassJob job = job_of(recipe, task.target);
    task.result = {};
    task.warnings = 0;
    if (task.target.border) store_fill(job);
    if (job.range.width == 0 || job.range.height == 0) continue;
    if (const auto* picture = std::get_if<std::shared_ptr<const Picture>>(&recipe.source_)) {
      const Window all{0, 0, (*picture)->width, (*picture)->height};
      render_picture(lane(scratch.views), recipe, **picture, all, job);
      continue;
    }
    if (recipe.is_derived()) {
      decode_group();  // lanes are used for what it is derived from
      if (const auto* warped = std::get_if<std::shared_ptr<const WarpedPicture>>(&recipe.source_)) {
        render_warped(task, **warped, job);
      } else {
        render_collage(task, *std::get<std::shared_ptr<const Collage>>(recipe.source_), job);
      }
      continue;
    }
    const CodecRecord* const its_codec = std::get<EncodedPicture>(recipe.source_).codec;
    const auto is_full = [&] {
      return scratch.windows >= size_t(decoder(*codec).lanes()) || scratch.views >= kMostPasses;
    };
    if (its_codec != codec || (is_full() && !shares_source(recipe))) decode_group();
    codec = its_codec;
    Lane& next = lane(scratch.views);
    if (!begin_lane(next, task, job)) continue;
    ++scratch.views;
    join(next);
  }
  decode_group();
  finish_streaming();
  for (const RenderTask& task : tasks) {
    const Recipe& recipe = *task.recipe;
    if (recipe.is_pending()) continue;  // rendered with its rectangles
    for (const Erased& erased : recipe.erased_) {
      store_erased(erased, recipe.channels(), recipe.canvas_.height, recipe.canvas_.width,
                   recipe.dtype(), task.target.format == MemoryFormat::kChannelsLast,
                   task.target.data);
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

bool Renderer::begin_lane(Lane& lane, RenderTask& task, const PassJob& job) {
  const Recipe& recipe = *task.recipe;
  const EncodedPicture& source = std::get<EncodedPicture>(recipe.source_);
  lane.task = &task;
  lane.lacks_alpha = source.color == ColorMode::kRGBA && source.codec->opaque;
  lane.is_wide = source.sample != DType::kUInt8;
  lane.transposed = recipe.transpose_ && !lane.is_wide;
  if (lane.is_wide) {
    lane.begin_wide(job, recipe.window_, source.sample);
  } else {
    const Window needed = lane.begin(recipe, job);
    if (needed.width == 0) {
      lane.finish();
      return false;
    }
    lane.part = stored_part(recipe.window_, needed, recipe.transpose_);
  }
  if (lane.transposed) {
    lane.window.begin(recipe.source_channels(), lane.part.width, lane.part.height);
  }
  lane.cost = cost_of(source, lane.part);
  scratch_->decoder_bytes = std::max(scratch_->decoder_bytes, source.header.working_bytes);
  return true;
}

bool Renderer::shares_source(const Recipe& recipe) const {
  return std::any_of(scratch_->decodes.begin(), scratch_->decodes.begin() + scratch_->windows,
                     [&](const SharedDecode& decode) {
                       return decode.views.front()->task->recipe->same_source(recipe);
                     });
}

// Note [Views that share a decode]
// Tasks whose recipes start from the same bytes (views of a Fork,
// crops of FiveCrop) are fed by one decode of the window that holds theirs, where that costs less
// than one for each: rows go to every pass while they are in the cache, and nothing is kept.
// Windows are exact, so the pixels are those of a decode of its own. Which damage is found in a
// file can depend on how far it is decoded: if a shared decode finds damage, each view is decoded
// alone, as if nothing had been shared.
void Renderer::join(Lane& lane) {
  const Recipe& recipe = *lane.task->recipe;
  const EncodedPicture& source = std::get<EncodedPicture>(recipe.source_);
  std::vector<SharedDecode>& decodes = scratch_->decodes;
  for (size_t i = 0; i < scratch_->windows; ++i) {
    SharedDecode& decode = decodes[i];
    if (!decode.views.front()->task->recipe->same_source(recipe)) continue;
    const Window both = united(decode.window, lane.part);
    const double cost = cost_of(source, both);
    if (cost > decode.cost + lane.cost) continue;
    decode.views.push_back(&lane);
    decode.window = both;
    decode.cost = cost;
    return;
  }
  if (decodes.size() == scratch_->windows) decodes.emplace_back();
  SharedDecode& decode = decodes[scratch_->windows++];
  decode.views.assign(1, &lane);
  decode.window = lane.part;
  decode.cost = lane.cost;
}

void Renderer::decode(const CodecRecord& codec, std::span<SharedDecode> decodes) {
  const Clock::time_point start = Clock::now();
  std::vector<DecodeJob>& jobs = scratch_->jobs;
  jobs.clear();
  for (SharedDecode& decode : decodes) jobs.push_back(job_for(decode));
  decoder(codec).decode(jobs);
  for (size_t i = 0; i < decodes.size(); ++i) {
    const std::vector<Lane*>& views = decodes[i].views;
    if (views.size() > 1 && (!jobs[i].result || jobs[i].warnings > 0)) {
      for (Lane* view : views) decode_alone(codec, *view);
    } else {
      for (Lane* view : views) finish_lane(*view, jobs[i]);
    }
  }
  const double before = counted_seconds();
  for (const SharedDecode& decode : decodes) {
    for (Lane* lane : decode.views) take_seconds(lane->pass);
  }
  const double rest = seconds_since(start) - (counted_seconds() - before);
  seconds_.entropy += std::max(rest, 0.0);
}

DecodeJob Renderer::job_for(SharedDecode& decode) {
  Lane& first = *decode.views.front();
  const EncodedPicture& source = std::get<EncodedPicture>(first.task->recipe->source_);
  DecodeJob job{.bytes = source.bytes,
                .window = decode.window,
                .color = first.lacks_alpha ? ColorMode::kRGB : source.color,
                .sample = source.sample,
                .strict = source.strict,
                .repair = source.repair,
                .sixteen_bit = source.sixteen_bit,
                .page = source.page,
                .sink = &first.sink(),
                .row_index = source.row_index,
                .picture_height = source.header.height,
                .result = {}};
  if (decode.views.size() == 1) return job;
  decode.rows.begin(decode.window);
  for (Lane* view : decode.views) decode.rows.add(view->sink(), view->part);
  job.sink = &decode.rows;
  return job;
}

void Renderer::decode_alone(const CodecRecord& codec, Lane& lane) {
  begin_lane(lane, *lane.task, PassJob(lane.job));
  SharedDecode alone;
  alone.views.assign(1, &lane);
  alone.window = lane.part;
  DecodeJob job = job_for(alone);
  decoder(codec).decode({&job, 1});
  finish_lane(lane, job);
}

void Renderer::finish_lane(Lane& lane, DecodeJob& job) {
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

void Renderer::render_kept(Lane& lane) {
  const Clock::time_point start = Clock::now();
  const Picture& picture = lane.wide.picture();
  const Window all{0, 0, picture.width, picture.height};
  lane.wide_pass.run(picture, all, lane.task->recipe->transpose_, lane.job);
  // Whole pictures: a large one is not kept along with the next record's.
  constexpr size_t kKept = size_t{1} << 20;
  if (lane.wide.held_bytes() > kKept) lane.wide.free();
  if (lane.wide_pass.held_bytes() > kKept) lane.wide_pass.free();
  seconds_.resample += seconds_since(start);
}

void Renderer::render_picture(Lane& lane, const Recipe& recipe, const Picture& picture,
                              const Window& window, const PassJob& job) {
  if (picture.dtype != DType::kUInt8) {
    const Clock::time_point start = Clock::now();
    lane.wide_pass.run(picture, seen_from(window.x, window.y, recipe.window_), recipe.transpose_,
                       job);
    seconds_.resample += seconds_since(start);
    return;
  }
  FusedPass& pass = lane.pass;
  const Window needed = lane.begin(recipe, job);
  if (needed.width == 0) return lane.finish();
  const Window part = stored_part(recipe.window_, needed, recipe.transpose_);
  RowBlock block{.count = part.height, .stride = picture.width};
  for (int c = 0; c < picture.channels; ++c) {
    block.channel[c] =
        picture.plane(c) + size_t(part.y - window.y) * picture.width + (part.x - window.x);
  }
  if (recipe.transpose_) {
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
  const Window needed = lane(0).begin(recipe, job);
  if (needed.width == 0) return lane(0).finish();
  const Window part = stored_part(recipe.window_, needed, recipe.transpose_);
  Result<const Picture*> painted = paint(collage, part, task.warnings);
  if (!painted) {
    task.result = std::move(painted.error());
    return;
  }
  render_picture(lane(0), recipe, **painted, part, job);
}

// The result's rows are made on demand, and go into the pass like a decoder's.
void Renderer::render_warped(RenderTask& task, const WarpedPicture& picture, const PassJob& job) {
  const Recipe& recipe = *task.recipe;
  Lane& lane = this->lane(0);
  if (is_wide(picture)) {
    const Clock::time_point start = Clock::now();
    const Picture made = warp_wide(picture, recipe.window_);
    seconds_.transform += seconds_since(start);
    return render_picture(lane, recipe, made, recipe.window_, job);
  }
  const Window needed = lane.begin(recipe, job);
  if (needed.width == 0) return lane.finish();
  const Window part = stored_part(recipe.window_, needed, recipe.transpose_);
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
    lane.begin(recipe, job);  // painting has used it
  }
  const Clock::time_point start = Clock::now();
  const double before = counted_seconds();
  if (recipe.transpose_) {
    lane.window.begin(recipe.source_channels(), part.width, part.height);
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

// All of it; tiles are decoded side by side.
size_t Renderer::painting_bytes(const Collage& collage) {
  size_t bytes = canvas_bytes(collage);
  for (const Collage::Tile& tile : collage.tiles) bytes += working_bytes(tile.picture);
  return bytes;
}

size_t Renderer::working_bytes(const Recipe& recipe) {
  if (std::holds_alternative<std::monostate>(recipe.source_)) return 0;  // a field without pixels
  const PassJob job = job_of(recipe, {});
  if (job.range.width == 0 || job.range.height == 0) return 0;
  size_t bytes = FusedPass::working_bytes(job);
  if (recipe.frame_) bytes += FramedRows::working_bytes(job.channels, job.width);
  if (recipe.transpose_) bytes += WindowBuffer::working_bytes(job.channels, job.width, job.height);
  if (const auto* encoded = std::get_if<EncodedPicture>(&recipe.source_)) {
    if (encoded->sample == DType::kUInt8) return bytes + encoded->header.working_bytes;
    const size_t pixels = size_t(recipe.window_.width) * size_t(recipe.window_.height);
    return WidePass::working_bytes(job) + encoded->header.working_bytes +
           pixels * size_t(job.channels) * size_of(encoded->sample);
  }
  if (const auto* pending = std::get_if<std::shared_ptr<const PendingPicture>>(&recipe.source_)) {
    const Recipe& from = (*pending)->from;
    const Size size = from.size();
    const size_t pixels = size_t(size.height) * size_t(size.width) * size_t(from.channels());
    return bytes + working_bytes(from) + 2 * pixels;
  }
  if (const auto* warped = std::get_if<std::shared_ptr<const WarpedPicture>>(&recipe.source_)) {
    if (is_wide(**warped)) {
      const Size to = (*warped)->warp.to;
      const size_t made = size_t(to.height) * size_t(to.width) * size_t(source_channels(**warped)) *
                          size_of(dtype_of(**warped));
      return made + (dtype_of(**warped) == DType::kUInt8 ? bytes : WidePass::working_bytes(job));
    }
    bytes += WarpPass::working_bytes(**warped);
    return (*warped)->collage ? bytes + painting_bytes(*(*warped)->collage) : bytes;
  }
  if (const auto* collage = std::get_if<std::shared_ptr<const Collage>>(&recipe.source_)) {
    return bytes + painting_bytes(**collage);
  }
  const auto* picture = std::get_if<std::shared_ptr<const Picture>>(&recipe.source_);
  if (picture && (*picture)->dtype != DType::kUInt8) return WidePass::working_bytes(job);
  return bytes;
}

void Renderer::trim(size_t keep_bytes) {
  if (held_bytes() <= keep_bytes) return;
  values_.trim(keep_bytes - std::min(keep_bytes, held_bytes() - values_.held_bytes()));
  if (held_bytes() <= keep_bytes) return;
  for (const std::unique_ptr<Lane>& lane : scratch_->lanes) {
    lane->free();
  }
  scratch_->warp.free();
  fields_.free();
  values_.trim(0);
  scratch_->canvas.pixels.free();
  if (scratch_->decoder_bytes > keep_bytes) {  // decoders keep their scratch while they live
    decoders_.clear();
    scratch_->decoder_bytes = 0;
  }
}

size_t Renderer::held_bytes() const {
  size_t bytes = scratch_->decoder_bytes + scratch_->warp.held_bytes() + fields_.held_bytes() +
                 values_.held_bytes() + scratch_->canvas.pixels.capacity();
  for (const std::unique_ptr<Lane>& lane : scratch_->lanes) {
    bytes += lane->held_bytes();
  }
  return bytes;
}

}  // namespace headrace
