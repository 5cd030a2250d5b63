// SPDX-License-Identifier: Apache-2.0
// Recipe -> pixels, in one fused pass: decode only the window -> orientation -> resample -> pixel
// map -> store. No full-size intermediate: rows go from the decoder through the horizontal pass.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/video/video_decoders.h"
#include "headrace/image/field_memory.h"
#include "headrace/image/fused_pass.h"
#include "headrace/image/recipe.h"
#include "headrace/image/value_memory.h"

namespace headrace {

// Where a picture goes: dense (C, H, W) or (H, W, C) of the recipe's size, channels and dtype.
struct RenderTarget {
  void* data = nullptr;
  MemoryFormat format = MemoryFormat::kChannelsFirst;
  bool batch = true;   // one of many, read when all are there; not a picture that is used at once
  bool border = true;  // stores the border, too; else what is there stays
};

// Seconds spent by stage; counters of one thread.
struct StageSeconds {
  double read = 0, entropy = 0, coded = 0, transform = 0, resample = 0, store = 0, python = 0;

  StageSeconds& operator+=(const StageSeconds& more) {
    read += more.read;
    entropy += more.entropy;
    coded += more.coded;
    transform += more.transform;
    resample += more.resample;
    store += more.store;
    python += more.python;
    return *this;
  }
  StageSeconds operator-(const StageSeconds& less) const {
    return {read - less.read,           entropy - less.entropy,   coded - less.coded,
            transform - less.transform, resample - less.resample, store - less.store,
            python - less.python};
  }
};

struct RenderTask {
  const Recipe* recipe = nullptr;
  RenderTarget target;
  Result<void> result;
  int warnings = 0;
};

// Pixels that a step has asked for and that are decoded with those of other records, in the order
// in which it asks: Note [Pixels together] in executor/record_worker.h.
struct PixelRequests {
  std::vector<Recipe> pictures;  // of pixels once they are answered
  size_t answered = 0;           // of them, since the step began
  bool waits = false;            // the last one is not answered yet

  void clear() { *this = {}; }
};

// Warnings about pictures that were delivered all the same; counters of one thread.
struct PictureRemarks {
  int64_t repaired = 0;      // damage that their decoder repaired
  int64_t exif_ignored = 0;  // an Exif orientation without a setting whether to apply it

  PictureRemarks& operator+=(const PictureRemarks& more) {
    repaired += more.repaired;
    exif_ignored += more.exif_ignored;
    return *this;
  }
  PictureRemarks operator-(const PictureRemarks& less) const {
    return {repaired - less.repaired, exif_ignored - less.exif_ignored};
  }
};

// Decoders, resample tables and row buffers, kept by a thread between pictures. Not thread-safe.
class Renderer {
 public:
  Renderer();
  ~Renderer();

  // Finds the codec and reads the header: HR0340 when no codec knows the bytes, the codec's error
  // when the header is unusable, HR0310 when it exceeds the limits, HR0349 where there is no such
  // page. Color is kRGB, strict is off.
  Result<EncodedPicture> open(std::span<const uint8_t> bytes, const DecodeLimits& limits,
                              int page = 0);
  // How many pictures like this one render() can decode efficiently at once; 0 if there is nothing
  // to decode.
  int lanes(const Recipe& recipe);
  // Fills in result and warnings of each task. After an error its target holds anything.
  void render(std::span<RenderTask> tasks);
  // Renders to a Picture, which starts a new recipe. Where requests are collected the error may
  // mean no more than that this one has to wait: then `waits` is set.
  Result<void> materialize(Recipe& recipe);
  // The same for several at once. One that cannot be rendered stays as it is.
  void materialize(std::span<Recipe* const> recipes);
  // Renders the part inside a border, and leaves the border to the new recipe; without a border,
  // everything.
  Result<void> materialize_shown(Recipe& recipe);
  // Makes views of one picture together; one that cannot be decoded stays as it is, and
  // its next user gets the error. Where requests are collected they wait together.
  void materialize_views(std::vector<Recipe*> views);
  // Where requests for pictures that would be decoded go now; null: nowhere.
  PixelRequests* requests() { return requests_; }
  // Bytes that rendering it may need beside the target, buffers of this object included; for the
  // memory budget.
  static size_t working_bytes(const Recipe& recipe);
  // Gives back buffers above the cap, after an unusually large picture.
  void trim(size_t keep_bytes);
  size_t held_bytes() const;

  // A step's limit for one value other than a picture; set by the lender of the memory.
  size_t largest_value() const { return largest_value_; }
  void allow_values(size_t bytes) { largest_value_ = bytes; }
  // The limit for a picture that steps have made far larger than it was: memory is lent by
  // a record's header, and to what is known of sizes before a record is read.
  void allow_pictures(size_t bytes) { largest_picture_ = bytes; }
  // HR0127 where pixels of `after` bytes made of `before` are more than that.
  Result<void> check_growth(size_t before, size_t after) const;

  FieldMemory& fields() { return fields_; }
  ValueMemory& values() { return values_; }
  AudioDecoders& sounds() { return sounds_; }
  VideoDecoders& videos() { return videos_; }

  // Decoding of sounds and videos counts as that of pictures' bits.
  StageSeconds& seconds() {
    seconds_.entropy += sounds_.take_seconds() + videos_.take_seconds();
    return seconds_;
  }
  void count_ignored_orientation() { ++remarks_.exif_ignored; }
  // Remarks since the last call.
  PictureRemarks take_remarks() { return std::exchange(remarks_, {}); }

 private:
  friend class Collecting;
  static size_t source_bytes(const Recipe& recipe);
  // REQUIRES: recipe.is_pending(), which it is no more.
  Result<void> do_pending(Recipe& recipe);
  void render_pending(RenderTask& task);
  static size_t painting_bytes(const Collage& collage);
  struct Lane;
  struct SharedDecode;
  struct Scratch;
  ImageDecoder& decoder(const CodecRecord& codec);
  static PassJob job_of(const Recipe& recipe, const RenderTarget& target);
  void render_warped(RenderTask& task, const WarpedPicture& picture, const PassJob& job);
  void render_collage(RenderTask& task, const Collage& collage, const PassJob& job);
  // A part of it; valid until the next one is painted.
  Result<const Picture*> paint(const Collage& collage, const Window& part, int& warnings);
  void take_seconds(FusedPass& pass);
  double counted_seconds() const;  // of passes
  // `picture` holds that window of the recipe's source.
  void render_picture(Lane& lane, const Recipe& recipe, const Picture& picture,
                      const Window& window, const PassJob& job);
  // False if no part of the picture is needed, and everything is done.
  bool begin_lane(Lane& lane, RenderTask& task, const PassJob& job);
  bool shares_source(const Recipe& recipe) const;
  void join(Lane& lane);
  void decode(const CodecRecord& codec, std::span<SharedDecode> decodes);
  static DecodeJob job_for(SharedDecode& decode);
  void decode_alone(const CodecRecord& codec, Lane& lane);
  void finish_lane(Lane& lane, DecodeJob& job);
  void render_kept(Lane& lane);
  Lane& lane(size_t number);
  std::unique_ptr<Scratch> scratch_;
  std::unordered_map<const CodecRecord*, std::unique_ptr<ImageDecoder>> decoders_;
  StageSeconds seconds_;
  FieldMemory fields_;
  ValueMemory values_;
  AudioDecoders sounds_;
  VideoDecoders videos_;
  PictureRemarks remarks_;
  size_t largest_value_ = size_t{2} << 30, largest_picture_ = SIZE_MAX;
  PixelRequests* requests_ = nullptr;
};

// While it lives, requests for pictures that would be decoded go to `requests`, unless null.
class Collecting {
 public:
  Collecting(Renderer& renderer, PixelRequests* requests) : renderer_(renderer) {
    renderer_.requests_ = requests;
    if (requests) requests->waits = false;
  }
  ~Collecting() { renderer_.requests_ = nullptr; }
  Collecting(const Collecting&) = delete;
  Collecting& operator=(const Collecting&) = delete;

 private:
  Renderer& renderer_;
};

// Does a step on a recipe; materializes first where the recipe says that it does not fit.
// `step(recipe)` returns bool, like Recipe's members.
template <class Step>
Result<void> edit(Recipe& picture, Renderer& renderer, Step&& step) {
  if (step(picture)) return {};
  if (Result<void> made = renderer.materialize(picture); !made) return made;
  step(picture);  // a fresh recipe takes any one step
  return {};
}

}  // namespace headrace
