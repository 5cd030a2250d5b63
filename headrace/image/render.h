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
#include "headrace/image/render_counts.h"
#include "headrace/image/render_task.h"
#include "headrace/image/value_memory.h"

namespace headrace {

// Pixels that a step has asked for and that are decoded with those of other records, in the order
// in which it asks: Note [Pixels together] in executor/record_worker.h.
struct PixelRequests {
  std::vector<Recipe> pictures;  // of pixels once they are answered
  size_t answered = 0;           // of them, since the step began
  bool waits = false;            // the last one is not answered yet

  void clear() { *this = {}; }
};

struct RenderLane;  // render_lane.h

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
  // REQUIRES: recipe.is_pending(), which it is no more.
  Result<void> do_pending(Recipe& recipe);
  void render_pending(RenderTask& task);
  struct Scratch;
  ImageDecoder& decoder(const CodecRecord& codec);
  void render_warped(RenderTask& task, const WarpedPicture& picture, const PassJob& job);
  void render_collage(RenderTask& task, const Collage& collage, const PassJob& job);
  // A part of it; valid until the next one is painted.
  Result<const Picture*> paint(const Collage& collage, const Window& part, int& warnings);
  void take_seconds(FusedPass& pass);
  double counted_seconds() const;  // of passes
  // `picture` holds that window of the recipe's source.
  void render_picture(RenderLane& lane, const Recipe& recipe, const Picture& picture,
                      const Window& window, const PassJob& job);
  void decode_shared(const CodecRecord& codec);
  void decode_alone(const CodecRecord& codec, RenderLane& lane);
  void finish_lane(RenderLane& lane, DecodeJob& job);
  void render_kept(RenderLane& lane);
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
