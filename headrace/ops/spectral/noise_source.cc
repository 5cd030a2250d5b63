// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/spectral/noise_source.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "headrace/codecs/audio/audio_clip.h"
#include "headrace/fields/numbers.h"
#include "headrace/fields/record.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/spectral/spectral_op.h"

namespace headrace {
namespace {

bool is_sound(const Field& field) {
  return field.kind == FieldKind::kAudio && field.dtype == DType::kFloat32 &&
         (field.encoded || field.shape.size() == 2);
}

size_t audio_field_of(std::string_view owner, const Source& source) {
  std::string names;
  size_t found = 0;
  int count = 0;
  for (size_t i = 0; i < source.schema().size(); ++i) {
    if (!is_sound(source.schema()[i])) continue;
    names += (count++ > 0 ? "\", \"" : "\"") + source.schema()[i].name;
    found = i;
  }
  if (count > 1) {
    raise_invalid_argument(owner, "source= has several audio fields, " + names + "\"",
                           "hr.open(..., kinds={name: \"tensor\"}) for those that are not noise");
  }
  if (count == 0 || source.size() == 0) {
    raise_invalid_argument(owner, "source= has no audio clips: it is " + source.description(),
                           "hr.open(\"noises/\"), a folder, list or shard of audio clips");
  }
  return found;
}

// A noise as its source provides it: a file, or (channels, frames) of numbers.
struct Stored {
  AudioClip audio;  // of a file
  const uint8_t* numbers = nullptr;
  int64_t channels = 0, frames = 0;
  int sample_rate = 0;
};

Result<Stored> stored_of(const Field& field, const FieldData& value, AudioDecoders& decoders) {
  if (!field.encoded) {
    const Shape& shape = value.shape.empty() ? field.shape : value.shape;
    if (!allows(field.shape, shape) ||
        value.bytes.size() != static_cast<size_t>(element_count(shape)) * sizeof(float)) {
      return wrong_value({field.name, field.kind, field.dtype, field.shape, {}}, value);
    }
    return Stored{{}, value.bytes.data(), shape[0], shape[1], field.sample_rate};
  }
  const Result<AudioClip> audio = open_audio(byte_ranges_of(value), decoders);
  if (!audio) return audio.error();
  const AudioHeader& header = audio->header;
  return Stored{*audio, nullptr, header.channels, header.frames, header.sample_rate};
}

// 0: unknown.
std::string rate_mismatch(int noise_rate, int audio_rate) {
  if ((noise_rate == 0) == (audio_rate == 0)) return {};
  return "and its noise must both have known sample rates, or neither, but only the " +
         std::string(
             audio_rate == 0
                 ? "noise's is known: declare the audio's with Resample(orig_freq=...) before it"
                 : "audio's is known: use noises in files, which have one");
}

// Reads `count` frames starting at `begin` as samples; channel c starts at to + c * count.
Result<void> read_samples(Stored& noise, int64_t begin, int64_t count, AudioDecoders& decoders,
                          float* to) {
  if (noise.audio.is_encoded()) {
    noise.audio.cut(begin, count);
    return decode_samples(noise.audio, decoders, to, count);
  }
  for (int64_t c = 0; c < noise.channels && count > 0; ++c) {
    std::memcpy(to + c * count,
                noise.numbers + static_cast<size_t>(c * noise.frames + begin) * sizeof(float),
                static_cast<size_t>(count) * sizeof(float));
  }
  return {};
}

}  // namespace

int64_t first_of_noise(double place, int64_t noise_frames, int64_t audio_frames) {
  const int64_t places =
      noise_frames >= audio_frames ? noise_frames - audio_frames + 1 : noise_frames;
  return std::min(static_cast<int64_t>(place * static_cast<double>(places)), places - 1);
}

std::string noise_too_short(int64_t audio_frames, int64_t noise_frames) {
  return "has " + std::to_string(audio_frames) + " frames, but its noise " +
         std::to_string(noise_frames) +
         ": use repeat=True to repeat it, or a RandomClip before it to shorten the audio";
}

NoiseSource::NoiseSource(std::string_view owner, SourcePtr source)
    : owner_(owner),
      source_(std::move(source)),
      field_(audio_field_of(owner, *source_)),
      wanted_(source_->schema().size()) {
  wanted_[field_] = true;
}

Result<Noise> NoiseSource::take(int64_t index, const Wanted& wanted, Renderer& renderer) const {
  RecordData data;
  data.max_bytes = renderer.largest_value();
  data.by_range = &wanted_;
  source_->read({&index, 1}, wanted_, {&data, 1});
  Result<Noise> noise =
      data.result ? take_of(data, wanted, renderer) : Result<Noise>(std::move(data.result.error()));
  if (!noise) blame(index, noise.error());
  return noise;
}

void NoiseSource::blame(int64_t index, Error& error) const {
  if (error.where.file.empty()) error.where = source_->where(index);
  error.note += (error.note.empty() ? "" : "; ") + std::string("this is noise ") +
                std::to_string(index) + " of source=, drawn for this record";
}

Result<Noise> NoiseSource::take_of(const RecordData& data, const Wanted& wanted,
                                   Renderer& renderer) const {
  Result<Stored> found =
      stored_of(source_->schema()[field_], data.fields[field_], renderer.audio_decoders());
  if (!found) return std::move(found.error());
  Stored& stored = *found;
  stored.audio.decoding = wanted.decoding;
  std::string reason = rate_mismatch(stored.sample_rate, wanted.sample_rate);
  if (reason.empty() && stored.sample_rate != wanted.sample_rate) {
    reason = resamplers_.refusal(stored.sample_rate, wanted.sample_rate);
    if (!reason.empty()) reason = "has a noise that " + reason;
  }
  if (!reason.empty()) return cannot_take(owner_, reason);
  const auto by = resamplers_.between(stored.sample_rate, wanted.sample_rate);
  Noise noise{.channels = stored.channels};
  noise.frames = by ? by->length_after(stored.frames) : stored.frames;
  if (noise.frames == 0) return cannot_take(owner_, "needs noise, but it has no frames");
  const bool is_short = noise.frames < wanted.frames;
  if (is_short && !wanted.repeat) {
    return cannot_take(owner_, noise_too_short(wanted.frames, noise.frames));
  }
  noise.first = first_of_noise(wanted.place, noise.frames, wanted.frames);
  AudioResampler::Stretch from{noise.first, noise.first + wanted.frames, 0};
  if (is_short) {
    from = {0, stored.frames, 0};
  } else if (by) {
    from = by->stretch_for(noise.first, wanted.frames);
  }
  from.end = std::min(from.end, stored.frames);
  const int64_t count = from.end - from.begin;
  if (Result<void> fits = check_outcome(owner_, {noise.channels, count}, renderer); !fits) {
    return std::move(fits.error());
  }
  Buffer samples(static_cast<size_t>(noise.channels * count) * sizeof(float));
  auto* const read = reinterpret_cast<float*>(samples.data());
  if (Result<void> done = read_samples(stored, from.begin, count, renderer.audio_decoders(), read);
      !done) {
    return std::move(done.error());
  }
  noise.stride = by ? by->length_after(count) : count;
  if (by) {
    Buffer made(static_cast<size_t>(noise.channels * noise.stride) * sizeof(float));
    auto* const to = reinterpret_cast<float*>(made.data());
    for (int64_t c = 0; c < noise.channels; ++c) {
      by->resample(read + c * count, count, to + c * noise.stride);
    }
    samples = std::move(made);
  }
  noise.memory = std::move(samples);
  noise.samples = reinterpret_cast<const float*>(noise.memory.data()) + from.skipped;
  if (!is_short) {  // the buffer holds exactly the wanted part
    noise.first = 0;
    noise.frames = wanted.frames;
  }
  return noise;
}

}  // namespace headrace
