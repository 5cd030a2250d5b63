// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/stored_media.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "headrace/codecs/audio/audio_clip.h"
#include "headrace/fields/pictures.h"
#include "headrace/fields/record.h"
#include "headrace/image/render.h"
#include "headrace/sources/source_around.h"
#include "headrace/sources/subset.h"

namespace headrace {
namespace {

const ErrorCode kNoneOpens{
    "HR0134", ErrorKind::kData, "type of stored images unknown",
    "With mode=\"stored\" images keep the channels and samples of the first image, but none of "
    "the first records could be opened. mode=\"RGB\", \"L\" and \"RGBA\" do not depend on it."};

const ErrorCode kNothingDecoded{
    "HR0137", ErrorKind::kConfig, "mode needs an image to decode",
    "mode= selects what encoded images are converted to when they are decoded. Arrays keep their "
    "channels and samples, and a source without encoded images or masks has nothing to decode."};

constexpr int64_t kTried = 16;  // records

bool is_decoded(const Field& field) { return is_picture(field.kind) && field.encoded; }

using IsWanted = std::function<bool(std::string_view field)>;

class StoredPictures final : public SourceAround {
 public:
  StoredPictures(SourcePtr inner, const PictureOptions& options, const IsWanted& wanted)
      : SourceAround(std::move(inner)) {
    schema_ = this->inner()->schema();
    for (size_t i = 0; i < schema_.size(); ++i) {
      if (is_decoded(schema_[i]) && wanted(schema_[i].name)) look(i, options);
    }
  }
  const Schema& schema() const override { return schema_; }
  std::string identity() const override { return inner()->identity(); }  // the same records

 private:
  void look(size_t number, const PictureOptions& options) {
    Field& field = schema_[number];
    std::vector<bool> wanted(schema_.size());
    wanted[number] = true;
    const int64_t records = std::min(inner()->size(), kTried);
    std::optional<Error> first;
    for (int64_t index = 0; index < records; ++index) {
      const Result<PictureForm> form = form_of(index, wanted, number, options);
      if (form) {
        field.shape = {form->channels, -1, -1};
        field.dtype = form->sample;
        return;
      }
      if (form.error().code->kind == ErrorKind::kStorage) throw Exception(form.error());
      if (!first) first = form.error();
    }
    if (first) {
      raise(kNoneOpens, "\"" + field.name + "\" of record 0: " + first->what,
            first->hint.empty() ? "mode=\"RGB\"" : first->hint);
    }
  }

  Result<PictureForm> form_of(int64_t index, const std::vector<bool>& wanted, size_t number,
                              const PictureOptions& options) const {
    RecordData record;
    inner()->read({&index, 1}, wanted, {&record, 1});
    if (!record.result) return std::move(record.result.error());
    Renderer renderer;
    const Result<EncodedImage> opened =
        renderer.open(record.fields[number].bytes, options.limits, options.page);
    if (!opened) return opened.error();
    return picture_form(options.mode, schema_[number].kind, opened->header);
  }

  Schema schema_;
};

const ErrorCode kNoSoundOpens{
    "HR0357", ErrorKind::kData, "sample rate and channels unknown",
    "Audio has the sample rate and channels of the first record, but none of the first records "
    "could be opened. The message names the problem with the first record."};

bool is_stored_sound(const Field& field) {
  return field.kind == FieldKind::kAudio && field.encoded;
}

class StoredSounds final : public SourceAround {
 public:
  explicit StoredSounds(SourcePtr inner) : SourceAround(std::move(inner)) {
    schema_ = this->inner()->schema();
    for (size_t i = 0; i < schema_.size(); ++i) {
      if (is_stored_sound(schema_[i])) look(i);
    }
  }
  const Schema& schema() const override { return schema_; }
  std::string identity() const override { return inner()->identity(); }  // the same records

 private:
  void look(size_t number) {
    Field& field = schema_[number];
    std::vector<bool> wanted(schema_.size());
    wanted[number] = true;
    const int64_t records = std::min(inner()->size(), kTried);
    std::optional<Error> first;
    for (int64_t index = 0; index < records; ++index) {
      const Result<AudioHeader> header = header_of(index, wanted, number);
      if (header) {
        field.shape = {header->channels, -1};
        field.dtype = DType::kFloat32;
        field.sample_rate = header->sample_rate;
        return;
      }
      if (header.error().code->kind == ErrorKind::kStorage) throw Exception(header.error());
      if (!first) first = header.error();
    }
    if (!first) return;
    const std::string place = "\"" + field.name + "\" of record 0 (" + inner()->key(0) + "): ";
    if (first->code->kind == ErrorKind::kUnsupported) {  // not damaged: its own title and hint
      first->what = place + first->what;
      throw Exception(*first);
    }
    raise(kNoSoundOpens, place + std::string(first->code->id) + " " + first->what,
          first->hint.empty() ? "download such files again, or remove them" : first->hint);
  }

  Result<AudioHeader> header_of(int64_t index, const std::vector<bool>& wanted,
                                size_t number) const {
    RecordData record;
    record.by_range = &wanted;
    inner()->read({&index, 1}, wanted, {&record, 1});
    if (!record.result) return std::move(record.result.error());
    AudioDecoders decoders;
    const Result<AudioClip> sound = open_audio(byte_ranges_of(record.fields[number]), decoders);
    if (!sound) return sound.error();
    return sound->header;
  }

  Schema schema_;
};

}  // namespace

SourcePtr with_stored_pictures(const SourcePtr& source, const PictureOptions& options,
                               const IsWanted& wanted) {
  if (options.mode == PictureMode::kRGB) return source;
  const bool any = std::ranges::any_of(source->schema(), [&](const Field& field) {
    return is_decoded(field) && wanted(field.name);
  });
  if (!any) {
    raise(kNothingDecoded, "no field of the source is an encoded image",
          "omit mode=; arrays are delivered unchanged");
  }
  if (options.mode != PictureMode::kStored) return source;
  // If the source is a view, this wraps the underlying source, so that record numbers match those
  // of the row index.
  return with_viewed(source, [&](const SourcePtr& viewed) {
    return std::make_shared<StoredPictures>(viewed, options, wanted);
  });
}

SourcePtr with_stored_sounds(SourcePtr source) {
  if (!std::ranges::any_of(source->schema(), is_stored_sound)) return source;
  return std::make_shared<StoredSounds>(std::move(source));
}

}  // namespace headrace
