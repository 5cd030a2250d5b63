// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/render.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/codecs/image/foreign_pictures.h"
#include "headrace/image/float_pass.h"
#include "headrace/image/framed_rows.h"
#include "headrace/image/shared_rows.h"
#include "headrace/image/warp_pass.h"
#include "headrace/image/window_buffer.h"

namespace headrace {
namespace {

using Clock = std::chrono::steady_clock;

const ErrorCode kUnknownPicture{
    "HR0340", ErrorKind::kData, "unknown picture format",
    "A picture is recognized by its first bytes, never by its name, and these are no signature of "
    "a codec that this build has. Often the file is something else (an HTML page that a download "
    "left, a text file), or empty. `headrace formats` lists the codecs."};

const ErrorCode kGrownTooLarge{
    "HR0127", ErrorKind::kResource, "enlarged picture exceeds the memory",
    "A step that needs a picture's pixels follows one that has made the picture far larger than it "
    "came, and these would take more than memory_limit leaves for one record. Nothing was "
    "allocated. A smaller Resize or Pad, a crop behind it, or a higher memory_limit."};

Error unknown_picture(std::span<const uint8_t> bytes) {
  Error error{.code = &kUnknownPicture, .what = "the file is empty"};
  const std::string_view name = foreign_name(bytes);
  if (!name.empty()) {
    error.what = "this is " + std::string(name) + ", for which there is no codec here";
  } else if (!bytes.empty()) {
    constexpr char kHex[] = "0123456789abcdef";
    error.what = "no codec knows these bytes; they begin with";
    for (uint8_t byte : bytes.first(std::min<size_t>(bytes.size(), 8))) {
      error.what += {' ', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  for (const CodecRecord* codec : Registry<CodecRecord>::all()) {
    error.note += (error.note.empty() ? "codecs: " : ", ") + std::string(codec->name);
  }
  error.hint =
      bytes.empty()  ? "fetch the file again, or leave it out"
      : name.empty() ? "look at the file: it is no picture, or of another format"
      : name.ends_with("picture")
          ? "convert such files to PNG or JPEG (Pillow reads most kinds), or open a Python "
            "object that decodes them"
          : "fetch the file again, or leave it out";
  return error;
}

// A picture of this size is streamed past the caches into its batch: some of them fill a cache.
constexpr size_t kStreamBytes = 256 << 10;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::shared_ptr<Picture> picture_for(const Recipe& recipe) {
  const Size size = recipe.size();
  return std::make_shared<Picture>(recipe.channels(), size.height, size.width, recipe.dtype());
}

RenderTask task_for(const Recipe& recipe, Picture& into) {
  return {.recipe = &recipe, .target = {.data = into.pixels.data(), .batch = false}, .result = {}};
}

// The part of the stored picture that holds `needed` of the oriented window.
Window stored_part(const Window& window, const Window& needed, bool transpose) {
  if (transpose) return {window.x + needed.y, window.y + needed.x, needed.height, needed.width};
  return {window.x + needed.x, window.y + needed.y, needed.width, needed.height};
}

// Passes that are fed side by side; more of them would not stay in the cache.
constexpr size_t kMostPasses = 48;

// What decoding a window costs, in pixels of which all is done: rows above it are walked too, where
// its codec cannot begin below them; the walk is half of the work.
double cost_of(const EncodedPicture& source, const Window& window) {
  const bool enters = source.codec->enters_rows || !source.row_index.known.empty();
  const double rows = enters ? window.height : window.y + window.height;
  return rows * source.header.width + double(window.width) * window.height;
}

}  // namespace

// What one picture to be made needs.
struct Renderer::Lane {
  FusedPass pass;
  FramedRows frame;  // where the picture is resized with a border
  bool framed = false;
  WindowBuffer window;  // where the axes are swapped
  bool transposed = false;
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
  RowSink& sink() { return transposed ? static_cast<RowSink&>(window) : upright(); }
  void finish() {
    if (framed) frame.finish();
  }
};

// A window to be decoded, and who wants parts of it: Note [Views that share a decode].
struct Renderer::SharedDecode {
  std::vector<Lane*> views;
  Window window;
  double cost = 0;
  SharedRows rows;
};

struct Renderer::Scratch {
  std::vector<std::unique_ptr<Lane>> lanes;
  WarpPass warp;
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

Result<EncodedPicture> Renderer::open(std::span<const uint8_t> bytes, const DecodeLimits& limits) {
  const CodecRecord* const codec = codec_of(bytes);
  if (!codec) return unknown_picture(bytes);
  Result<ImageHeader> header = decoder(*codec).read_header(bytes);
  if (!header) return std::move(header.error());
  if (Result<void> allowed = check_limits(*header, limits); !allowed) {
    return std::move(allowed.error());
  }
  return EncodedPicture{.bytes = bytes, .codec = codec, .header = *header};
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
    const PassJob job = job_of(recipe, task.target);
    task.result = {};
    task.warnings = 0;
    store_fill(job);
    if (job.range.width == 0 || job.range.height == 0) continue;
    if (const auto* picture = std::get_if<std::shared_ptr<const Picture>>(&recipe.source_)) {
      render_picture(lane(scratch.views), recipe, **picture, job);
      continue;
    }
    if (const auto* warped = std::get_if<std::shared_ptr<const WarpedPicture>>(&recipe.source_)) {
      render_warped(lane(scratch.views), recipe, **warped, job);
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
    for (const Erased& erased : recipe.erased_) {
      store_erased(erased, recipe.channels(), recipe.canvas_.height, recipe.canvas_.width,
                   recipe.dtype(), task.target.format == MemoryFormat::kChannelsLast,
                   task.target.data);
    }
  }
}

bool Renderer::begin_lane(Lane& lane, RenderTask& task, const PassJob& job) {
  const Recipe& recipe = *task.recipe;
  const EncodedPicture& source = std::get<EncodedPicture>(recipe.source_);
  const Window needed = lane.begin(recipe, job);
  if (needed.width == 0) {
    lane.finish();
    return false;
  }
  lane.part = stored_part(recipe.window_, needed, recipe.transpose_);
  lane.task = &task;
  lane.transposed = recipe.transpose_;
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
// Tasks whose recipes start from the same bytes (views of a Fork, crops of FiveCrop) are fed by one
// decode of the window that holds theirs, where that costs less than one for each: rows go to every
// pass while they are in the cache, and nothing is kept. Windows are exact, so the pixels are those
// of a decode of its own. What is wrong with a file can depend on how far it is walked: where a
// shared decode meets damage, each view is decoded alone, as if nothing had been shared.
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
  double rest = seconds_since(start);
  for (const SharedDecode& decode : decodes) {
    for (Lane* lane : decode.views) {
      const double resample = lane->pass.take_resample_seconds();
      const double pixels = lane->pass.take_pixel_seconds();
      const double store = lane->pass.take_store_seconds();
      seconds_.resample += resample;
      seconds_.transform += pixels;
      seconds_.store += store;
      rest -= resample + pixels + store;
    }
  }
  seconds_.entropy += std::max(rest, 0.0);
}

DecodeJob Renderer::job_for(SharedDecode& decode) {
  Lane& first = *decode.views.front();
  const EncodedPicture& source = std::get<EncodedPicture>(first.task->recipe->source_);
  DecodeJob job{.bytes = source.bytes,
                .window = decode.window,
                .color = source.color,
                .strict = source.strict,
                .repair = source.repair,
                .sixteen_bit = source.sixteen_bit,
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
  if (job.warnings > 0) ++repaired_;
  if (lane.transposed) lane.upright().rows(lane.window.transposed());
  lane.finish();
}

void Renderer::render_picture(Lane& lane, const Recipe& recipe, const Picture& picture,
                              const PassJob& job) {
  if (picture.dtype != DType::kUInt8) {
    const Clock::time_point start = Clock::now();
    render_floats(picture, recipe.window_, recipe.transpose_, job);
    seconds_.resample += seconds_since(start);
    return;
  }
  FusedPass& pass = lane.pass;
  const Window needed = lane.begin(recipe, job);
  if (needed.width == 0) return lane.finish();
  const Window part = stored_part(recipe.window_, needed, recipe.transpose_);
  RowBlock block{.count = part.height, .stride = picture.width};
  for (int c = 0; c < picture.channels; ++c) {
    block.channel[c] = picture.plane(c) + size_t(part.y) * picture.width + part.x;
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

// The outcome's rows are made where they are wanted, and go into the pass as a decoder's do.
void Renderer::render_warped(Lane& lane, const Recipe& recipe, const WarpedPicture& picture,
                             const PassJob& job) {
  const Clock::time_point start = Clock::now();
  const double before = seconds_.resample + seconds_.transform + seconds_.store;
  FusedPass& pass = lane.pass;
  const Window needed = lane.begin(recipe, job);
  if (needed.width == 0) return lane.finish();
  const Window part = stored_part(recipe.window_, needed, recipe.transpose_);
  if (recipe.transpose_) {
    lane.window.begin(recipe.source_channels(), part.width, part.height);
    scratch_->warp.run(picture, part, lane.window);
    lane.upright().rows(lane.window.transposed());
  } else {
    scratch_->warp.run(picture, part, lane.upright());
  }
  lane.finish();
  take_seconds(pass);
  const double counted = seconds_.resample + seconds_.transform + seconds_.store - before;
  seconds_.transform += std::max(seconds_since(start) - counted, 0.0);
}

void Renderer::take_seconds(FusedPass& pass) {
  seconds_.resample += pass.take_resample_seconds();
  seconds_.transform += pass.take_pixel_seconds();
  seconds_.store += pass.take_store_seconds();
}

Result<void> Renderer::check_growth(size_t before, size_t after) const {
  if (after <= largest_picture_ || after / 2 <= before) return {};
  return Error{.code = &kGrownTooLarge,
               .what = "a picture of " + std::to_string(before) + " bytes would take " +
                       std::to_string(after)};
}

// Of the pixels that a recipe begins with, decoded or to be.
size_t Renderer::source_bytes(const Recipe& recipe) {
  if (const auto* encoded = std::get_if<EncodedPicture>(&recipe.source_)) {
    return size_t(encoded->header.height) * size_t(encoded->header.width) *
           size_t(recipe.source_channels());
  }
  if (const auto* warped = std::get_if<std::shared_ptr<const WarpedPicture>>(&recipe.source_)) {
    return (*warped)->from->pixels.size();
  }
  const auto* picture = std::get_if<std::shared_ptr<const Picture>>(&recipe.source_);
  return picture ? (*picture)->pixels.size() : 0;
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
    if (recipe.pixels()) return {};  // else it could not be decoded: here is who hears why
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
  inner.crop(part);
  if (Result<void> made = materialize(inner); !made) return made;
  recipe = std::move(inner);
  recipe.pad(part.x, part.y, size.width - part.x - part.width, size.height - part.y - part.height,
             std::span(shown->fill).first(size_t(recipe.channels())));
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

size_t Renderer::working_bytes(const Recipe& recipe) {
  if (std::holds_alternative<std::monostate>(recipe.source_)) return 0;  // a field without pixels
  const PassJob job = job_of(recipe, {});
  if (job.range.width == 0 || job.range.height == 0) return 0;
  size_t bytes = FusedPass::working_bytes(job);
  if (recipe.frame_) bytes += FramedRows::working_bytes(job.channels, job.width);
  if (recipe.transpose_) bytes += WindowBuffer::working_bytes(job.channels, job.width, job.height);
  if (const auto* encoded = std::get_if<EncodedPicture>(&recipe.source_)) {
    return bytes + encoded->header.working_bytes;
  }
  if (const auto* warped = std::get_if<std::shared_ptr<const WarpedPicture>>(&recipe.source_)) {
    return bytes + WarpPass::working_bytes(**warped);
  }
  const auto* picture = std::get_if<std::shared_ptr<const Picture>>(&recipe.source_);
  if (picture && (*picture)->dtype != DType::kUInt8) return float_working_bytes(job);
  return bytes;
}

void Renderer::trim(size_t keep_bytes) {
  if (held_bytes() <= keep_bytes) return;
  for (const std::unique_ptr<Lane>& lane : scratch_->lanes) {
    lane->pass.free();
    lane->frame.free();
    lane->window.free();
  }
  scratch_->warp.free();
  if (scratch_->decoder_bytes > keep_bytes) {  // decoders keep their scratch while they live
    decoders_.clear();
    scratch_->decoder_bytes = 0;
  }
}

size_t Renderer::held_bytes() const {
  size_t bytes = scratch_->decoder_bytes + scratch_->warp.held_bytes();
  for (const std::unique_ptr<Lane>& lane : scratch_->lanes) {
    bytes += lane->pass.held_bytes() + lane->frame.held_bytes() + lane->window.held_bytes();
  }
  return bytes;
}

}  // namespace headrace
