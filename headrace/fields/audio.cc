// SPDX-License-Identifier: Apache-2.0
// Audio: (channels, frames), fractions of full scale as float32.
#include "headrace/fields/audio.h"

#include <string>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/fields/media.h"
#include "headrace/fields/numbers.h"
#include "headrace/fields/record.h"

namespace headrace {
namespace {

const ErrorCode kTooLong{
    "HR0355", ErrorKind::kResource, "decoded audio exceeds the memory limit",
    "A transform needs all samples of the audio, which would exceed one record's share of "
    "memory_limit. Nothing was allocated. Add a clip transform before it (RandomClip, CenterClip), "
    "so that only the clip is decoded, or raise memory_limit."};

const ErrorCode kOtherRate{
    "HR0356", ErrorKind::kData, "audio has a different sample rate",
    "All audio in a batch must have the sample rate of the dataset's first record, unless a "
    "transform resamples it: Resample(new_freq=16000) as the first transform accepts any sample "
    "rate."};

bool take_audio(Field& field) {
  if (is_stored_bytes(field)) {
    field.encoded = true;
    field.dtype = DType::kFloat32;
    field.shape = {-1, -1};
  } else if (field.dtype != DType::kFloat32 || field.shape.size() != 2 || is_string(field.kind)) {
    return false;
  }
  field.kind = FieldKind::kAudio;
  return true;
}

Result<void> begin_audio(const BeginContext& from, FieldValue& value) {
  value.audio = {};
  value.audio.decoding = from.options.video;
  value.sample_rate = from.state.sample_rate;
  if (!from.field.encoded) return begin_numbers(from, value);
  Result<AudioClip> audio = open_audio(byte_ranges_of(from.data), from.renderer.audio_decoders());
  if (!audio) return std::move(audio.error());
  value.audio = *audio;
  value.audio.decoding = from.options.video;
  value.sample_rate = audio->header.sample_rate;
  value.dtype = DType::kFloat32;
  value.bytes = {};
  value.shape.clear();
  return {};
}

const KindRecord kAudio{
    .name = "audio",
    .doc =
        "An audio clip: an encoded file, or float32 (channels, frames) with full scale at 1. "
        "Audio transforms (clips, gain, resampling) apply to it.",
    .kind = FieldKind::kAudio,
    .media = "audio",
    .take = take_audio,
    .by_range = true,
    .begin = begin_audio};
const Register<KindRecord> registered_audio(kAudio);

const MediaRecord kSounds{.name = "audio",
                          .kind = FieldKind::kAudio,
                          .noun = "audio clip",
                          .order = 1,
                          .without_library = "WAV",
                          .usual = {"flac"},
                          .formats = registered_formats<AudioCodecRecord>,
                          .format_of =
                              [](std::span<const uint8_t> bytes) {
                                const AudioCodecRecord* const codec = audio_codec_of(bytes);
                                return codec ? codec->name : std::string_view();
                              },
                          .begins = begins_like_audio,
                          .check = [](const ByteRanges& file, Renderer& renderer) -> Result<void> {
                            const Result<AudioClip> audio =
                                open_audio(file, renderer.audio_decoders());
                            return audio ? Result<void>() : audio.error();
                          }};
const Register<MediaRecord> registered_sounds(kSounds);

}  // namespace

Shape shape_of(const AudioClip& audio) { return {audio.header.channels, audio.frames()}; }

int64_t frames_of(const FieldValue& value) {
  return value.audio.is_encoded() ? value.audio.frames() : value.shape.at(1);
}
int64_t channels_of(const FieldValue& value) {
  return value.audio.is_encoded() ? value.audio.header.channels : value.shape.at(0);
}

Result<void> make_samples(FieldValue& value, Renderer& renderer) {
  if (!value.audio.is_encoded()) return {};
  const AudioClip audio = std::exchange(value.audio, {});
  value.audio.decoding = audio.decoding;
  if (audio.sample_bytes() > renderer.largest_value()) {
    return Error{.code = &kTooLong,
                 .what = "it has " + text_of(DType::kFloat32, shape_of(audio)) + ", " +
                         std::to_string(audio.sample_bytes() >> 20) + " MiB"};
  }
  std::shared_ptr<Buffer> samples = renderer.values().of(audio.sample_bytes());
  Result<void> decoded = decode_samples(audio, renderer.audio_decoders(),
                                        reinterpret_cast<float*>(samples->data()), audio.frames());
  if (!decoded) return decoded;
  value.shape = shape_of(audio);
  value.own(std::move(samples));
  return {};
}

Result<void> check_rate(const FieldState& state, const FieldValue& value) {
  if (value.sample_rate == state.sample_rate) return {};
  return Error{.code = &kOtherRate,
               .what = "\"" + state.name + "\" has " + std::to_string(value.sample_rate) +
                       " Hz, but the first record has " + std::to_string(state.sample_rate),
               .hint = "Resample(new_freq=" + std::to_string(state.sample_rate) +
                       ") as the first transform, or sort the files"};
}

}  // namespace headrace
