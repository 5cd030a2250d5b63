// SPDX-License-Identifier: Apache-2.0
// AAC-LC in MP4, by headrace-av: from two packets before the window's first sample on. A packet has
// 1024 samples, which overlap with the next one's; the edit list says which of all are heard.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/codecs/audio/aac_config.h"
#include "headrace/codecs/audio/mp4_sound.h"
#include "headrace/codecs/audio/sound_errors.h"
#include "headrace/codecs/media/media_errors.h"
#include "headrace/codecs/media/media_process.h"
#include "headrace/codecs/media/media_program.h"

namespace headrace {
namespace {

constexpr std::string_view kAacName = "AAC";
constexpr int64_t kAacFrames = 1024;  // of a packet
constexpr int64_t kBeforeWindow = 2;  // packets, of which the first is not what it would be
constexpr size_t kPacketsAtOnce = 128;
constexpr size_t kMostAacChannels = 8;
constexpr size_t kWorkingBytes = size_t{256} << 20;  // of its address space

bool begins_like_mp4_sound(std::span<const uint8_t> bytes) {
  return bytes.size() >= 12 && std::memcmp(bytes.data() + 4, "ftyp", 4) == 0;
}
bool begins_like_adts(std::span<const uint8_t> bytes) {  // frames of AAC one behind the other
  return bytes.size() >= 7 && bytes[0] == 0xFF && (bytes[1] & 0xF6) == 0xF0;
}

Error unread_aac(std::string what) {
  return unread_sound(
      kAacName, std::move(what),
      "convert it once: ffmpeg -i in.m4a out.flac, or out.opus where it may be lossy "
      "again");
}

// The container's errors are those of videos.
Error as_sound(const Error& error) {
  const std::string_view code = error.code->id;
  if (error.code->kind == ErrorKind::kUnsupported) {
    return {.code = unread_aac("").code, .what = error.what, .hint = error.hint};
  }
  if (code == "HR0362") return {.code = cut_off_sound("MP4", "").code, .what = error.what};
  return corrupt_sound("MP4", error.what);
}

struct AacTrack {
  Mp4Sound sound;
  AudioHeader header;
};

Result<AacTrack> read_aac_track(std::span<const uint8_t> bytes) {
  if (begins_like_adts(bytes))
    return unread_aac("is a bare stream, which does not say how long it is");
  Result<Mp4Sound> sound = read_mp4_sound(bytes);
  if (!sound) return as_sound(sound.error());
  constexpr int kMpeg4Audio = 0x40;
  if (sound->codec != "mp4a" || sound->object_type != kMpeg4Audio) {
    return unread_aac("holds a sound of another codec (" + sound->codec + ")");
  }
  const AacConfig config = read_aac_config(sound->parameters);
  if (!config.is_good) return corrupt_sound(kAacName, "its decoder's parameters are cut off");
  if (config.object_type != 2 || config.has_sbr || config.short_frames || config.channels == 0 ||
      sound->ticks_per_second != config.sample_rate) {
    return unread_aac("is of another form than AAC-LC (HE-AAC, for one)");
  }
  const auto all = static_cast<int64_t>(sound->packets.size()) * kAacFrames;
  if (sound->end > all) return truncated_sound(kAacName, all, sound->end);
  AacTrack out{.sound = std::move(*sound), .header = {}};
  out.header = {
      .frames = out.sound.end - out.sound.begin,
      .channels = config.channels,
      .sample_rate = config.sample_rate,
      .working_bytes = (size_t{8} << 20) + out.sound.packets.size() * sizeof(MediaPacket)};
  if (Result<void> good = check_sound(kAacName, out.header, bytes.size(), kAacFrames); !good) {
    return std::move(good.error());
  }
  return out;
}

class AacDecoder final : public AudioDecoder {
 public:
  Result<AudioHeader> read_header(std::span<const uint8_t> bytes) override {
    const Result<AacTrack> track = read_aac_track(bytes);
    if (!track) return track.error();
    return track->header;
  }

  Result<void> decode(const AudioJob& job) override {
    const Result<AacTrack> track = read_aac_track(job.bytes);
    if (!track) return track.error();
    if (job.count == 0) return {};
    Patience patience;
    if (Result<void> good = open(track->sound, patience); !good) return good;
    const int64_t begin = track->sound.begin + job.begin, end = begin + job.count;
    const auto last = static_cast<size_t>((end + kAacFrames - 1) / kAacFrames);
    auto next = static_cast<size_t>(std::max<int64_t>(begin / kAacFrames - kBeforeWindow, 0));
    while (next < last) {
      const size_t count = std::min(last - next, kPacketsAtOnce);
      if (Result<void> good = decode_packets(*track, job, next, count, patience); !good)
        return good;
      // What of these samples lies in the window.
      const auto first = static_cast<int64_t>(next) * kAacFrames;
      const int64_t from = std::max(begin, first);
      const int64_t to = std::min(end, first + static_cast<int64_t>(count) * kAacFrames);
      for (int64_t at = from; at < to;) {
        const int64_t packet = (at - first) / kAacFrames, in_packet = (at - first) % kAacFrames;
        const int64_t length = std::min(kAacFrames - in_packet, to - at);
        for (int c = 0; c < track->header.channels; ++c) {
          const auto plane = (packet * track->header.channels + c) * kAacFrames + in_packet;
          std::memcpy(job.planes + c * job.stride + (at - begin),
                      process_->frames().data() + static_cast<size_t>(plane) * sizeof(float),
                      static_cast<size_t>(length) * sizeof(float));
        }
        at += length;
      }
      next += count;
    }
    return {};
  }

 private:
  Result<void> open(const Mp4Sound& sound, Patience& patience) {
    if (!process_ || !process_->is_running()) {
      Result<std::unique_ptr<MediaProcess>> started =
          MediaProcess::start(media_program(), true, patience);
      if (!started) return std::move(started.error());
      process_ = std::move(*started);
    }
    const size_t samples = kPacketsAtOnce * kMostAacChannels * kAacFrames * sizeof(float);
    if (Result<void> good = process_->reserve(std::max<size_t>(sound.parameters.size(), 1 << 16),
                                              samples, kWorkingBytes);
        !good) {
      return good;
    }
    std::ranges::copy(sound.parameters, process_->packets().begin());
    return expect(media::ReplyKind::kOpened,
                  process_->ask({.kind = media::RequestKind::kOpenSound,
                                 .parameter_bytes = static_cast<uint32_t>(sound.parameters.size())},
                                patience));
  }

  // Their samples lie at the beginning of the process's frames then.
  Result<void> decode_packets(const AacTrack& track, const AudioJob& job, size_t begin,
                              size_t count, Patience& patience) {
    const auto packets = std::span(track.sound.packets).subspan(begin, count);
    size_t bytes = count * sizeof(media::Packet);
    for (const MediaPacket& packet : packets) bytes += packet.size;
    if (Result<void> good = process_->reserve(bytes, 0, kWorkingBytes); !good) return good;
    uint8_t* const memory = process_->packets().data();
    size_t at = count * sizeof(media::Packet);
    for (size_t i = 0; i < count; ++i) {
      const media::Packet entry{
          .offset = at, .size = packets[i].size, .number = static_cast<uint32_t>(begin + i)};
      std::memcpy(memory + i * sizeof entry, &entry, sizeof entry);
      std::memcpy(memory + at, job.bytes.data() + packets[i].offset, packets[i].size);
      at += packets[i].size;
    }
    Result<media::Reply> reply = process_->ask(
        {.kind = media::RequestKind::kDecodeSound, .packets = static_cast<uint32_t>(count)},
        patience);
    const media::Samples samples = reply ? reply->samples : media::Samples{};
    if (Result<void> good = expect(media::ReplyKind::kSamples, std::move(reply)); !good)
      return good;
    if (samples.frames == 2 * kAacFrames) return unread_aac("is HE-AAC, and does not say so");
    if (samples.packets != count || samples.frames != kAacFrames ||
        samples.channels != static_cast<uint32_t>(track.header.channels) ||
        samples.rate != static_cast<uint32_t>(track.header.sample_rate)) {
      return corrupt_sound(kAacName, "its packets hold other samples than its header says");
    }
    return {};
  }

  Result<void> expect(media::ReplyKind kind, Result<media::Reply> reply) {
    if (!reply) return std::move(reply.error());
    if (reply->kind == kind) return {};
    if (reply->kind == media::ReplyKind::kFailed && reply->failure == media::Failure::kDamage) {
      return corrupt_sound(kAacName, "packet " + std::to_string(reply->number) + " is damaged");
    }
    if (reply->kind == media::ReplyKind::kFailed && reply->failure == media::Failure::kFormat) {
      return unread_aac("changes its form on the way");
    }
    const media::Reply answer = *reply;
    process_->end();
    return failure_of(answer);
  }

  std::unique_ptr<MediaProcess> process_;
};

const AudioCodecRecord kAac{
    .name = "aac",
    .doc = "AAC-LC in MP4 (M4A), by libavcodec in a process of its own, headrace-av.",
    .oracle = "FFmpeg, within 1e-5 of full scale",
    .suffixes = {".m4a", ".aac"},
    .sniff =
        [](std::span<const uint8_t> bytes) {
          return begins_like_mp4_sound(bytes) || begins_like_adts(bytes);
        },
    .make = []() -> std::unique_ptr<AudioDecoder> { return std::make_unique<AacDecoder>(); }};
const Register<AudioCodecRecord> registered_aac(kAac);

}  // namespace
}  // namespace headrace
