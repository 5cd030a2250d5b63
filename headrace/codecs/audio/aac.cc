// SPDX-License-Identifier: Apache-2.0
// AAC-LC in MP4, by headrace-av: decoding starts two packets before the window's first sample. A
// packet has 1024 samples, which overlap with the next one's; the edit list says which are audible.
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/codecs/audio/aac_packets.h"
#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/audio/mp4_audio_track.h"

namespace headrace {
namespace {

bool begins_like_mp4(std::span<const uint8_t> bytes) {
  if (bytes.size() < 12) return false;
  const std::string_view first(reinterpret_cast<const char*>(bytes.data()) + 4, 4);
  return first == "ftyp" || first == "moov" || first == "mdat" || first == "wide" ||
         first == "styp" || first == "free" || first == "skip";
}
// Files with an audio brand.
bool begins_like_m4a(std::span<const uint8_t> bytes) {
  if (!begins_like_mp4(bytes)) return false;
  const std::string_view brand(reinterpret_cast<const char*>(bytes.data()) + 8, 4);
  return brand == "M4A " || brand == "M4B " || brand == "M4P " || brand == "F4A ";
}
bool begins_like_adts(std::span<const uint8_t> bytes) {  // consecutive AAC frames
  return bytes.size() >= 7 && bytes[0] == 0xFF && (bytes[1] & 0xF6) == 0xF0;
}

// The container reports video errors; converts them to audio errors.
Error as_audio_error(const Error& error) {
  const std::string_view code = error.code->id;
  if (error.code->kind == ErrorKind::kUnsupported) {
    return {.code = unsupported_aac("").code, .what = error.what, .hint = error.hint};
  }
  if (code == "HR0364") return no_audio_track("MP4");
  if (code == "HR0362") return {.code = truncated_audio("MP4", "").code, .what = error.what};
  return corrupt_audio("MP4", error.what);
}

// The first packet after a gap in time; 0 if there is no gap. Decoding would drop the gap, and
// shift everything after it to an earlier time.
size_t packet_after_gap(const Mp4AudioTrack& audio) {
  for (size_t i = 1; i < audio.packets.size(); ++i) {
    if (audio.packets[i].pts - audio.packets[i - 1].pts > kAacFrames * 3 / 2) return i;
  }
  return 0;
}

struct AacTrack {
  Mp4AudioTrack audio;
  AudioHeader header;
};

Result<AacTrack> read_aac_track(const ByteRanges& file) {
  const Result<std::span<const uint8_t>> first = file.at(0, kAudioSignature);
  if (!first) return first.error();
  if (begins_like_adts(*first))
    return unsupported_aac("is a raw ADTS stream, whose length is unknown");
  Result<Mp4AudioTrack> audio = read_mp4_audio_track(file);
  if (!audio) return as_audio_error(audio.error());
  constexpr int kMpeg4Audio = 0x40;
  if (audio->codec != "mp4a" || audio->object_type != kMpeg4Audio) {
    return unsupported_aac("contains audio of another codec (" + audio->codec + ")");
  }
  const Result<AacConfig> config = read_aac_lc(audio->parameters);
  if (!config) return config.error();
  if (audio->ticks_per_second != config->sample_rate) {
    return unsupported_aac("has a time base of 1/" + std::to_string(audio->ticks_per_second) +
                           " s, but a sample rate of " + std::to_string(config->sample_rate) +
                           " Hz");
  }
  if (const size_t packet = packet_after_gap(*audio)) {
    return unsupported_audio(
        kAacName,
        "has gaps in its audio: packet " + std::to_string(packet) +
            " starts after the end of the previous one",
        "fill the gaps: ffmpeg -i in.mp4 -c:v copy -af aresample=async=1 out.mp4");
  }
  const auto all = static_cast<int64_t>(audio->packets.size()) * kAacFrames;
  if (audio->end > all) return truncated_audio(kAacName, all, audio->end);
  AacTrack out{.audio = std::move(*audio), .header = {}};
  out.header = {
      .frames = out.audio.end - out.audio.begin,
      .channels = config->channels,
      .sample_rate = config->sample_rate,
      .start = static_cast<double>(out.audio.start) / config->sample_rate,
      .working_bytes = (size_t{8} << 20) + out.audio.packets.size() * sizeof(MediaPacket)};
  if (Result<void> good = check_audio_header(kAacName, out.header, file.size(), kAacFrames);
      !good) {
    return std::move(good.error());
  }
  return out;
}

class AacDecoder final : public AudioDecoder {
 public:
  Result<AudioHeader> read_header(const ByteRanges& file) override {
    const Result<AacTrack> track = read_aac_track(file);
    if (!track) return track.error();
    return track->header;
  }

  Result<void> decode(const AudioJob& job) override {
    const Result<AacTrack> track = read_aac_track(job.file);
    if (!track) return track.error();
    return packets_.decode(job, {.parameters = track->audio.parameters,
                                 .packets = track->audio.packets,
                                 .channels = track->header.channels,
                                 .sample_rate = track->header.sample_rate,
                                 .begin = track->audio.begin});
  }

 private:
  AacPackets packets_;
};

const AudioCodecRecord kAac{
    .name = "aac",
    .doc = "AAC-LC in MP4 (M4A), via libavcodec in a separate process, headrace-av.",
    .oracle = "FFmpeg, within 1e-5 of full scale",
    .suffixes = {".m4a", ".m4b", ".aac"},
    .sniff =
        [](std::span<const uint8_t> bytes) {
          return begins_like_m4a(bytes) || begins_like_adts(bytes);
        },
    .make = []() -> std::unique_ptr<AudioDecoder> { return std::make_unique<AacDecoder>(); },
    .sniff_video = begins_like_mp4};
const Register<AudioCodecRecord> registered_aac(kAac);

}  // namespace
}  // namespace headrace
