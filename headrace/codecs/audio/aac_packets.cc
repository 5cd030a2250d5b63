// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/aac_packets.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/media/media_errors.h"
#include "headrace/codecs/media/media_process.h"

namespace headrace {
namespace {

constexpr int64_t kBeforeWindow = 2;  // packets, the first of which is not exact
constexpr size_t kPacketsAtOnce = 128;
constexpr size_t kMaxAacChannels = 8;
constexpr size_t kWorkingBytes = size_t{256} << 20;  // of the process's address space

constexpr int kSbr = 5, kParametricStereo = 29;

class ConfigBits {
 public:
  explicit ConfigBits(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  int operator()(int count) {
    int value = 0;
    for (; count > 0; --count, ++at_) {
      const bool is_there = at_ / 8 < bytes_.size();
      if (!is_there) good = false;
      value = value << 1 | (is_there ? bytes_[at_ / 8] >> (7 - at_ % 8) & 1 : 0);
    }
    return value;
  }
  size_t left() const { return bytes_.size() * 8 - at_; }
  bool good = true;

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

int object_type(ConfigBits& bits) {
  const int type = bits(5);
  return type == 31 ? 32 + bits(6) : type;
}

int sample_rate(ConfigBits& bits) {
  constexpr int kRates[] = {96000, 88200, 64000, 48000, 44100, 32000, 24000,
                            22050, 16000, 12000, 11025, 8000,  7350};
  const int index = bits(4);
  if (index == 15) return bits(24);
  return index < 13 ? kRates[index] : 0;
}

}  // namespace

AacConfig read_aac_config(std::span<const uint8_t> bytes) {
  constexpr int kChannels[16] = {0, 1, 2, 3, 4, 5, 6, 8, 0, 0, 0, 7, 8, 0, 8, 0};
  constexpr int kExtension = 0x2B7;
  ConfigBits bits(bytes);
  AacConfig out;
  out.object_type = object_type(bits);
  out.sample_rate = sample_rate(bits);
  out.channels = kChannels[bits(4)];
  out.has_sbr = out.object_type == kSbr || out.object_type == kParametricStereo;
  if (!out.has_sbr) {
    out.short_frames = bits(1);
    const bool depends_on_core = bits(1);
    if (depends_on_core) bits(14);
    bits(1);
    // Stored after the part that older decoders read.
    if (out.channels > 0 && bits.left() >= 16 && bits(11) == kExtension) {
      out.has_sbr = object_type(bits) == kSbr && bits(1);
    }
  }
  out.is_good = bits.good;
  return out;
}

Error unsupported_aac(std::string what) {
  return unsupported_audio(
      kAacName, std::move(what),
      "convert it once: ffmpeg -i in.m4a out.flac (or out.opus, if a second lossy encoding is "
      "acceptable)");
}

Result<AacConfig> read_aac_lc(std::span<const uint8_t> parameters) {
  const AacConfig config = read_aac_config(parameters);
  if (!config.is_good) return corrupt_audio(kAacName, "its decoder configuration is truncated");
  if (config.object_type != 2 || config.has_sbr || config.short_frames || config.channels == 0) {
    return unsupported_aac("is AAC, but not AAC-LC (HE-AAC, for example)");
  }
  return config;
}

Result<void> AacPackets::decode(const AudioJob& job, const AacStream& stream) {
  if (job.count == 0) return {};
  Patience patience{.seconds = job.media.seconds, .stop = job.media.stop};
  if (Result<void> good = open(stream, job.media.isolate, patience); !good) return good;
  const int64_t begin = stream.begin + job.begin, end = begin + job.count;
  const auto last = static_cast<size_t>((end + kAacFrames - 1) / kAacFrames);
  auto next = static_cast<size_t>(std::max<int64_t>(begin / kAacFrames - kBeforeWindow, 0));
  while (next < last) {
    const size_t count = std::min(last - next, kPacketsAtOnce);
    if (Result<void> good = decode_packets(stream, job, next, count, patience); !good) return good;
    // The part of these samples that is inside the window.
    const auto first = static_cast<int64_t>(next) * kAacFrames;
    const int64_t from = std::max(begin, first);
    const int64_t to = std::min(end, first + static_cast<int64_t>(count) * kAacFrames);
    for (int64_t at = from; at < to;) {
      const int64_t packet = (at - first) / kAacFrames, in_packet = (at - first) % kAacFrames;
      const int64_t length = std::min(kAacFrames - in_packet, to - at);
      for (int c = 0; c < stream.channels; ++c) {
        const auto plane = (packet * stream.channels + c) * kAacFrames + in_packet;
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

Result<void> AacPackets::open(const AacStream& stream, bool isolate, Patience& patience) {
  if (!process_ || !process_->is_running() || isolated_ != isolate) {
    process_.reset();
    Result<std::unique_ptr<MediaProcess>> started =
        MediaProcess::start(media_program(), isolate, patience);
    if (!started) return std::move(started.error());
    process_ = std::move(*started);
    isolated_ = isolate;
  }
  process_->drop_large_packets();
  const size_t samples = kPacketsAtOnce * kMaxAacChannels * kAacFrames * sizeof(float);
  if (Result<void> good = process_->reserve(std::max<size_t>(stream.parameters.size(), 1 << 16),
                                            samples, kWorkingBytes);
      !good) {
    return good;
  }
  std::ranges::copy(stream.parameters, process_->packets().begin());
  return expect(media::ReplyKind::kOpened,
                process_->ask({.kind = media::RequestKind::kOpenAudio,
                               .parameter_bytes = static_cast<uint32_t>(stream.parameters.size())},
                              patience));
}

// Afterwards the samples are at the start of the process's frame memory.
Result<void> AacPackets::decode_packets(const AacStream& stream, const AudioJob& job, size_t begin,
                                        size_t count, Patience& patience) {
  const auto packets = stream.packets.subspan(begin, count);
  size_t bytes = count * sizeof(media::Packet);
  for (const MediaPacket& packet : packets) bytes += packet.size;
  if (Result<void> good = process_->reserve(bytes, 0, kWorkingBytes); !good) return good;
  uint8_t* const memory = process_->packets().data();
  size_t at = count * sizeof(media::Packet);
  for (size_t i = 0; i < count; ++i) {
    const media::Packet entry{
        .offset = at, .size = packets[i].size, .number = static_cast<uint32_t>(begin + i)};
    std::memcpy(memory + i * sizeof entry, &entry, sizeof entry);
    if (Result<void> read =
            job.file.read(static_cast<uint64_t>(packets[i].offset), {memory + at, packets[i].size});
        !read) {
      return read;
    }
    at += packets[i].size;
  }
  Result<media::Reply> reply = process_->ask(
      {.kind = media::RequestKind::kDecodeAudio, .packets = static_cast<uint32_t>(count)},
      patience);
  const media::Samples samples = reply ? reply->samples : media::Samples{};
  if (Result<void> good = expect(media::ReplyKind::kSamples, std::move(reply)); !good) return good;
  if (samples.frames == 2 * kAacFrames) return unsupported_aac("is HE-AAC declared as AAC-LC");
  if (samples.packets != count || samples.frames != kAacFrames ||
      samples.channels != static_cast<uint32_t>(stream.channels) ||
      samples.rate != static_cast<uint32_t>(stream.sample_rate)) {
    return corrupt_audio(kAacName,
                         "its packets have a different sample format than its header declares");
  }
  return {};
}

Result<void> AacPackets::expect(media::ReplyKind kind, Result<media::Reply> reply) {
  if (!reply) return std::move(reply.error());
  if (reply->kind == kind) return {};
  if (reply->kind == media::ReplyKind::kFailed && reply->failure == media::Failure::kDamage) {
    return corrupt_audio(kAacName, "packet " + std::to_string(reply->number) + " is damaged");
  }
  if (reply->kind == media::ReplyKind::kFailed && reply->failure == media::Failure::kFormat) {
    return unsupported_aac("changes its format midway");
  }
  const media::Reply answer = *reply;
  process_->end();
  return failure_of(answer);
}

}  // namespace headrace
