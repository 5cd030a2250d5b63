// SPDX-License-Identifier: Apache-2.0
// Renders recipes to pixels in one fused pass: decode only the window -> orientation -> resample ->
// pixel map -> store. There is no full-size intermediate: the decoder's rows go directly into the
// horizontal pass.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/video/video_decoder.h"
#include "headrace/image/field_memory.h"
#include "headrace/image/fused_pass.h"
#include "headrace/image/recipe.h"
#include "headrace/image/render_counts.h"
#include "headrace/image/render_task.h"
#include "headrace/image/value_memory.h"

namespace headrace {

// Requests of an operator for pixels, in order, which are decoded together with those of other
// records: Note [Pixels together] in executor/record_worker.h.
struct PixelRequests {
  std::vector<Recipe> pictures;  // replaced by recipes of pixels when they are decoded
  size_t answered = 0;           // how many of them the operator has received since it started
  bool waits = false;            // the last one has not been decoded yet

  void clear() { *this = {}; }
};

struct RenderLane;  // render_lane.h

// Decoders, resample tables and row buffers, kept by a thread between pictures. Not thread-safe.
class Renderer {
 public:
  Renderer();
  ~Renderer();

  // Finds the codec and reads the header: HR0340 if no codec recognizes the bytes, the codec's
  // error if the header is invalid, HR0310 if it exceeds the limits, HR0349 if there is no such
  // page. Sets color to kRGB, and strict to false.
  Result<EncodedImage> open(std::span<const uint8_t> bytes, const DecodeLimits& limits,
                            int page = 0);
  // How many pictures like this one render() can decode efficiently at once; 0 if there is nothing
  // to decode.
  int lanes(const Recipe& recipe);
  // Sets result and warnings of each task. After an error, the contents of its target are
  // unspecified.
  void render(std::span<RenderTask> tasks);
  // Renders to a Picture, which starts a new recipe. If requests are collected, an error may only
  // mean that this one has to wait: then `waits` is set.
  Result<void> materialize(Recipe& recipe);
  // The same for several recipes at once. Those that cannot be rendered are left unchanged.
  void materialize(std::span<Recipe* const> recipes);
  // Renders only the part inside a border; the new recipe adds the border again. Renders everything
  // if there is no border.
  Result<void> materialize_shown(Recipe& recipe);
  // Materializes views of one picture together. One that cannot be decoded is left unchanged, and
  // its next user gets the error. If requests are collected, they wait together.
  void materialize_views(std::vector<Recipe*> views);
  // The list in which requests for pictures to decode are being collected; null if they are not
  // collected.
  PixelRequests* requests() { return requests_; }
  // Frees buffers beyond this many bytes, after an unusually large picture.
  void trim(size_t keep_bytes);
  size_t held_bytes() const;

  // An operator's limit for one value other than a picture; set by the code that grants the memory.
  size_t largest_value() const { return largest_value_; }
  void allow_values(size_t bytes) { largest_value_ = bytes; }
  // The limit for a picture that operators have made much larger than it was: the memory granted to
  // a record only depends on its header, and on sizes that are known before it is read.
  void allow_pictures(size_t bytes) { largest_picture_ = bytes; }
  // HR0127 if `after` bytes of pixels, made from `before` bytes, exceed the limit and are more than
  // twice as many.
  Result<void> check_growth(size_t before, size_t after) const;

  FieldMemory& fields() { return fields_; }
  ValueMemory& values() { return values_; }
  AudioDecoders& audio_decoders() { return audio_decoders_; }
  VideoDecoders& videos() { return videos_; }

  // Decoding of audio and video counts as entropy decoding.
  StageSeconds& seconds() {
    seconds_.entropy += audio_decoders_.take_seconds() + videos_.take_seconds();
    return seconds_;
  }
  void count_ignored_orientation() { ++remarks_.exif_ignored; }
  // Warnings since the last call.
  PictureRemarks take_remarks() { return std::exchange(remarks_, {}); }

 private:
  friend class Collecting;
  // Executes the pending pass. REQUIRES: recipe.is_pending(); it is not pending afterwards.
  Result<void> do_pending(Recipe& recipe);
  void render_pending(RenderTask& task);
  struct Scratch;
  ImageDecoder& decoder(const CodecRecord& codec);
  void render_warped(RenderTask& task, const WarpedPicture& picture, const PassJob& job);
  void render_collage(RenderTask& task, const Collage& collage, const PassJob& job);
  // Renders a part of a collage; valid until the next call.
  Result<const Picture*> paint(const Collage& collage, const Window& part, int& warnings);
  void take_seconds(FusedPass& pass);
  double counted_seconds() const;  // in passes
  // `picture` contains this window of the recipe's source.
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
  AudioDecoders audio_decoders_;
  VideoDecoders videos_;
  PictureRemarks remarks_;
  size_t largest_value_ = size_t{2} << 30, largest_picture_ = SIZE_MAX;
  PixelRequests* requests_ = nullptr;
};

// While it exists, requests for pictures to decode are collected in `requests`, unless that is
// null.
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

// Applies an operation to a recipe; materializes first if the recipe cannot represent it.
// `step(recipe)` returns bool, like Recipe's members.
template <class Step>
Result<void> edit(Recipe& picture, Renderer& renderer, Step&& step) {
  if (step(picture)) return {};
  if (Result<void> made = renderer.materialize(picture); !made) return made;
  step(picture);  // a new recipe can represent any single operation
  return {};
}

}  // namespace headrace
