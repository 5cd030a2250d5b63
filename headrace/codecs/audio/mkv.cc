// SPDX-License-Identifier: Apache-2.0
// Audio of Matroska and WebM. Packets are repackaged into their codec's own container (Opus and
// Vorbis into Ogg, FLAC, MP3 and PCM into theirs) and decoded from there; AAC goes to headrace-av
// packet by packet.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/number_text.h"
#include "headrace/base/registry.h"
#include "headrace/codecs/audio/aac_packets.h"
#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/audio/mkv_audio_track.h"
#include "headrace/codecs/audio/ogg_pages.h"
#include "headrace/codecs/audio/opus_packets.h"
#include "headrace/codecs/audio/vorbis_packets.h"
#include "headrace/codecs/media/mkv_ids.h"

namespace headrace {
namespace {

using MkvBytes = std::span<const uint8_t>;

Result<MkvBytes> packet_of(const MediaPacket& packet, const ByteRanges& file) {
  return file.at(static_cast<uint64_t>(packet.offset), packet.size);
}

uint64_t bytes_of_packets(const MkvAudioTrack& audio) {
  uint64_t bytes = 0;
  for (const MediaPacket& packet : audio.packets) bytes += packet.size;
  return bytes;
}

int64_t samples_in(int64_t nanoseconds, double rate) {
  return std::llround(static_cast<double>(nanoseconds) * 1e-9 * rate);
}

using Rewritten = std::vector<uint8_t>;

// The packets, concatenated.
Result<Rewritten> joined(Rewritten begin, const MkvAudioTrack& audio, const ByteRanges& file) {
  const size_t head = begin.size();
  begin.resize(head + bytes_of_packets(audio));
  std::span<uint8_t> rest = std::span(begin).subspan(head);
  for (const MediaPacket& packet : audio.packets) {
    Result<void> read = file.read(static_cast<uint64_t>(packet.offset), rest.first(packet.size));
    if (!read) return std::move(read.error());
    rest = rest.subspan(packet.size);
  }
  return begin;
}

Result<Rewritten> opus_in_ogg(const MkvAudioTrack& audio, const ByteRanges& file) {
  constexpr uint8_t kTags[] = {'O', 'p', 'u', 's', 'T', 'a', 'g', 's', 0, 0, 0, 0, 0, 0, 0, 0};
  OggWriter ogg;
  ogg.add(audio.parameters, 0);
  ogg.add(kTags, 0);
  int64_t position = 0;
  for (size_t i = 0; i < audio.packets.size(); ++i) {
    const Result<MkvBytes> packet = packet_of(audio.packets[i], file);
    if (!packet) return packet.error();
    const int64_t duration = opus_duration(*packet);
    if (duration == 0) {
      return corrupt_audio("Opus", "packet " + std::to_string(i) + " of it is invalid");
    }
    position += duration;
    const bool last = i + 1 == audio.packets.size();
    if (last) position -= std::clamp<int64_t>(samples_in(audio.discards_ns, 48000), 0, duration);
    ogg.add(*packet, position, last);
  }
  return ogg.bytes();
}

Result<Rewritten> vorbis_in_ogg(const MkvAudioTrack& audio, const ByteRanges& file) {
  const Result<std::vector<MkvBytes>> headers = vorbis_headers(audio.parameters);
  if (!headers) return headers.error();
  const Result<Rewritten> bytes = joined({}, audio, file);
  if (!bytes) return bytes.error();
  std::vector<MkvBytes> packets;
  MkvBytes rest = *bytes;
  for (const MediaPacket& packet : audio.packets) {
    packets.push_back(rest.first(packet.size));
    rest = rest.subspan(packet.size);
  }
  Result<std::vector<int64_t>> positions = vorbis_positions(*headers, packets);
  if (!positions) return std::move(positions.error());
  OggWriter ogg;
  for (const MkvBytes header : *headers) ogg.add(header, 0);
  for (size_t i = 0; i < packets.size(); ++i) {
    const bool last = i + 1 == packets.size();
    const int64_t unheard = last ? samples_in(audio.discards_ns, audio.sample_rate) : 0;
    const int64_t position = (*positions)[i];
    ogg.add(packets[i], position - std::clamp<int64_t>(unheard, 0, position), last);
  }
  return ogg.bytes();
}

// The codec's own header consists of the track's parameters; MP3 has none.
Result<Rewritten> flac_joined(const MkvAudioTrack& audio, const ByteRanges& file) {
  return joined(audio.parameters, audio, file);
}
Result<Rewritten> mp3_joined(const MkvAudioTrack& audio, const ByteRanges& file) {
  return joined({}, audio, file);
}

Result<Rewritten> samples_in_wav(const MkvAudioTrack& audio, const ByteRanges& file,
                                 uint16_t format) {
  const uint64_t bytes = bytes_of_packets(audio);
  const auto channels = static_cast<uint64_t>(std::clamp<int64_t>(audio.channels, 0, 1000));
  const auto bits = static_cast<uint64_t>(std::clamp<int64_t>(audio.bits, 0, 64));
  Rewritten out;
  const auto put = [&](uint64_t value, int count) {
    for (int i = 0; i < count; ++i) out.push_back(static_cast<uint8_t>(value >> 8 * i));
  };
  const auto name = [&](const char* text) { out.insert(out.end(), text, text + 4); };
  const auto rate = static_cast<uint64_t>(std::clamp(audio.sample_rate, 0.0, 1e6));
  name("RIFF");
  put(36 + bytes, 4);
  name("WAVE");
  name("fmt ");
  put(16, 4);
  put(format, 2);
  put(channels, 2);
  put(rate, 4);
  put(rate * channels * bits / 8, 4);
  put(channels * bits / 8, 2);
  put(bits, 2);
  name("data");
  put(bytes, 4);
  return joined(std::move(out), audio, file);
}

struct MkvAudioCodec {
  std::string_view name;    // codec name used by the track
  std::string_view reader;  // the audio codec that reads the rewritten file
  Result<Rewritten> (*rewrite)(const MkvAudioTrack& audio, const ByteRanges& file);
};
constexpr MkvAudioCodec kMkvAudioCodecs[] = {
    {"A_OPUS", "opus", opus_in_ogg},
    {"A_VORBIS", "vorbis", vorbis_in_ogg},
    {"A_FLAC", "flac", flac_joined},
    {"A_MPEG/L3", "mp3", mp3_joined},
    {"A_MPEG/L2", "mp3", mp3_joined},
    {"A_PCM/INT/LIT", "wav",
     [](const MkvAudioTrack& audio, const ByteRanges& file) {
       return samples_in_wav(audio, file, 1);
     }},
    {"A_PCM/FLOAT/IEEE", "wav",
     [](const MkvAudioTrack& audio, const ByteRanges& file) {
       return samples_in_wav(audio, file, 3);
     }},
};

// The time of the first audible sample in seconds. Vorbis blocks overlap, so the first packet gives
// no samples: they come with the second one, and count as that packet's. If both packets are in one
// container block, which has the first packet's time, the samples come later by half of both
// durations.
Result<double> start_of(const MkvAudioTrack& audio, const ByteRanges& file) {
  if (audio.codec != "A_VORBIS" || audio.packets.size() < 2) return audio.start;
  const double delay = static_cast<double>(audio.delay_ns) * 1e-9;
  const int64_t second = audio.packets[1].pts;
  if (second != audio.packets[0].pts) return static_cast<double>(second) * audio.tick - delay;
  const Result<std::vector<MkvBytes>> headers = vorbis_headers(audio.parameters);
  if (!headers) return headers.error();
  Buffer first;
  const MediaPacket& where = audio.packets[0];
  const Result<MkvBytes> kept = file.keep(static_cast<uint64_t>(where.offset), where.size, first);
  if (!kept) return kept.error();
  const Result<MkvBytes> next = packet_of(audio.packets[1], file);
  if (!next) return next.error();
  const MkvBytes both[] = {*kept, *next};
  const Result<std::vector<int64_t>> positions = vorbis_positions(*headers, both);
  if (!positions) return positions.error();
  return audio.start + static_cast<double>((*positions)[1]) / audio.sample_rate - delay;
}

Error gaps(std::string what) {
  return unsupported_audio(
      kMkvName, "has gaps in its audio: " + std::move(what),
      "fill the gaps: ffmpeg -i in.mkv -c:v copy -af aresample=async=1 out.mkv");
}

// The duration of each packet in seconds if all are equal; otherwise 0. `mean`: their average.
Result<double> seconds_of_each(const MkvAudioTrack& audio, const ByteRanges& file, double mean,
                               int rate) {
  if (audio.codec.starts_with("A_AAC")) return static_cast<double>(kAacFrames) / rate;
  if (audio.codec.starts_with("A_MPEG/L")) return mean;
  if (audio.codec != "A_OPUS") return 0.0;
  std::optional<int64_t> each;
  for (const MediaPacket& packet : audio.packets) {
    constexpr uint32_t kDurationBytes = 2;  // bytes
    const Result<MkvBytes> begin =
        file.at(static_cast<uint64_t>(packet.offset), std::min(packet.size, kDurationBytes));
    if (!begin) return begin.error();
    const int64_t duration = opus_duration(*begin);
    if (each.value_or(duration) != duration) return 0.0;
    each = duration;
  }
  return static_cast<double>(each.value_or(0)) / 48000;
}

// A lost packet would shift all samples after it.
Result<void> check_gaps(const MkvAudioTrack& audio, const ByteRanges& file, int64_t frames,
                        int rate) {
  if (audio.packets.size() < 2) return {};
  const double lasts = static_cast<double>(frames) / rate;
  const double mean = lasts / static_cast<double>(audio.packets.size());
  const double slack = 2 * mean + 3 * audio.tick + 0.01;
  const double last_lasts = mean * static_cast<double>(audio.in_last);
  if (std::abs(audio.last - audio.start + last_lasts - lasts) > slack) {
    return gaps("packets of " + shortest_text(lasts) + " s span " +
                shortest_text(audio.last - audio.start) + " s");
  }
  // One or two missing packets are within the tolerance for the total, but not between neighboring
  // timestamps.
  const Result<double> alike = seconds_of_each(audio, file, mean, rate);
  if (!alike) return alike.error();
  const double each = *alike;
  size_t begin = 0;  // packets of a block, which share one timestamp
  for (size_t i = 1; i < audio.packets.size() && each > 0; ++i) {
    const int64_t before = audio.packets[begin].pts, here = audio.packets[i].pts;
    if (here == before) continue;
    const double late =
        static_cast<double>(here - before) * audio.tick - static_cast<double>(i - begin) * each;
    if (late > each / 2 + 2 * audio.tick) {
      return gaps("packet " + std::to_string(i) + " of it comes " + std::to_string(late) +
                  " s after the end of the previous one");
    }
    begin = i;
  }
  return {};
}

class MkvDecoder final : public AudioDecoder {
 public:
  Result<AudioHeader> read_header(const ByteRanges& file) override {
    Result<MkvAudioTrack> audio = read_mkv_audio_track(file);
    if (!audio) return std::move(audio.error());
    if (audio->packets.empty()) return corrupt_audio(kMkvName, "its audio track has no packet");
    Result<AudioHeader> header =
        audio->codec.starts_with("A_AAC") ? aac_header(*audio, file) : other_header(*audio, file);
    if (!header) return header;
    const Result<double> start = start_of(*audio, file);
    if (!start) return start.error();
    const int rate = header->sample_rate;
    const int64_t unheard = delay_of(*audio, rate) + end_left_out(*audio, rate);
    if (Result<void> good = check_gaps(*audio, file, header->frames + unheard, rate); !good) {
      return std::move(good.error());
    }
    header->start = *start;
    return header;
  }

  Result<void> decode(const AudioJob& job) override {
    const Result<MkvAudioTrack> audio = read_mkv_audio_track(job.file);
    if (!audio) return audio.error();
    if (audio->codec.starts_with("A_AAC")) {
      const Result<AacConfig> config = read_aac_lc(audio->parameters);
      if (!config) return config.error();
      return aac_.decode(job, {.parameters = audio->parameters,
                               .packets = audio->packets,
                               .channels = config->channels,
                               .sample_rate = config->sample_rate,
                               .begin = delay_of(*audio, config->sample_rate)});
    }
    Result<Buffer> rewritten = rewrite(*audio, job.file);
    if (!rewritten) return std::move(rewritten.error());
    AudioJob inner = job;
    inner.file = rewritten->bytes();
    if (drops(*audio)) {
      const Result<AudioHeader> header = reader_->read_header(inner.file);
      if (!header) return header.error();
      inner.begin += delay_of(*audio, header->sample_rate);
    }
    return reader_->decode(inner);
  }

 private:
  // Whether samples before the first audible one are dropped here. Opus states their number itself,
  // and for Vorbis they are what the first packet alone does not give.
  static bool drops(const MkvAudioTrack& audio) {
    return audio.delay_ns > 0 && audio.codec != "A_OPUS" && audio.codec != "A_VORBIS";
  }
  static int64_t delay_of(const MkvAudioTrack& audio, int rate) {
    return drops(audio) ? samples_in(audio.delay_ns, rate) : 0;
  }

  // Samples at the end that are dropped here; Ogg states itself where its audio ends.
  static int64_t end_left_out(const MkvAudioTrack& audio, int rate) {
    const bool in_ogg = audio.codec == "A_OPUS" || audio.codec == "A_VORBIS";
    return in_ogg ? 0 : samples_in(audio.discards_ns, rate);
  }

  static Result<AudioHeader> aac_header(const MkvAudioTrack& audio, const ByteRanges& file) {
    const Result<AacConfig> config = read_aac_lc(audio.parameters);
    if (!config) return config.error();
    const int64_t all = static_cast<int64_t>(audio.packets.size()) * kAacFrames;
    const int64_t delay = delay_of(audio, config->sample_rate);
    const int64_t unheard = end_left_out(audio, config->sample_rate);
    if (delay + unheard > all) {
      return corrupt_audio(kAacName, "its codec delay and padding exceed its length");
    }
    const AudioHeader header{
        .frames = all - delay - unheard,
        .channels = config->channels,
        .sample_rate = config->sample_rate,
        .working_bytes = (size_t{8} << 20) + audio.packets.size() * sizeof(MediaPacket)};
    if (Result<void> good = check_audio_header(kAacName, header, file.size(), kAacFrames); !good) {
      return std::move(good.error());
    }
    return header;
  }

  Result<AudioHeader> other_header(const MkvAudioTrack& audio, const ByteRanges& file) {
    const Result<Buffer> rewritten = rewrite(audio, file);
    if (!rewritten) return rewritten.error();
    Result<AudioHeader> header = reader_->read_header(rewritten->bytes());
    if (!header) return header;
    header->working_bytes += 2 * rewritten->size();
    const int rate = header->sample_rate;
    header->frames -= delay_of(audio, rate) + end_left_out(audio, rate);
    if (header->frames < 0)
      return corrupt_audio(kMkvName, "its codec delay and padding exceed its length");
    return header;
  }

  // Rewrites the file into the format of the codec named by reader_.
  Result<Buffer> rewrite(const MkvAudioTrack& audio, const ByteRanges& file) {
    const MkvAudioCodec* coding = nullptr;
    for (const MkvAudioCodec& each : kMkvAudioCodecs) {
      if (each.name == audio.codec) coding = &each;
    }
    const AudioCodecRecord* const codec =
        coding ? Registry<AudioCodecRecord>::find(coding->reader) : nullptr;
    if (!codec) {
      std::string name;
      for (const char c : audio.codec.substr(0, 40)) name += c < ' ' || c > '~' ? '?' : c;
      return unsupported_audio(kMkvName, "contains audio of the codec \"" + name + "\"",
                               "convert it once: ffmpeg -i in.mkv -c:v copy -c:a libopus out.mkv");
    }
    // In Ogg, each packet gets a page of its own.
    constexpr uint64_t kPage = 32;
    if (const uint64_t bytes = bytes_of_packets(audio) + kPage * audio.packets.size();
        bytes > ByteRanges::kMax) {
      return unsupported_audio(kMkvName,
                               "has " + std::to_string(bytes >> 20) + " MiB of audio; up to " +
                                   std::to_string(ByteRanges::kMax >> 20) + " are supported",
                               "convert it once: ffmpeg -i in.mkv -vn out.flac");
    }
    if (codec != codec_) reader_ = codec->make();
    codec_ = codec;
    const Result<Rewritten> made = coding->rewrite(audio, file);
    if (!made) return made.error();
    Buffer out(made->size());
    std::memcpy(out.data(), made->data(), made->size());
    return out;
  }

  const AudioCodecRecord* codec_ = nullptr;
  std::unique_ptr<AudioDecoder> reader_;
  AacPackets aac_;
};

const AudioCodecRecord kMkvAudio{
    .name = "mka",
    .doc = "The audio of Matroska and WebM: Opus, Vorbis, AAC-LC, FLAC, MP3, PCM.",
    .oracle = "the same as for the codec of the track",
    .suffixes = {".mka", ".weba"},
    .sniff = [](MkvBytes) { return false; },
    .make = []() -> std::unique_ptr<AudioDecoder> { return std::make_unique<MkvDecoder>(); },
    .sniff_video = begins_like_mkv};
const Register<AudioCodecRecord> registered_mkv_audio(kMkvAudio);

}  // namespace
}  // namespace headrace
