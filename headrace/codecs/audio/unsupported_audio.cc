// SPDX-License-Identifier: Apache-2.0
// Audio formats that are recognized but not read, so that no folder leaves them out silently.
#include <algorithm>
#include <string_view>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/audio/ogg_pages.h"

namespace headrace {
namespace {

struct UnsupportedAudioFormat {
  std::string_view name;
  std::string_view begins;
  bool in_ogg = false;  // in its first packet
};
constexpr UnsupportedAudioFormat kUnsupportedAudioFormats[] = {
    {"AIFF", "FORM"},
    {"AU", ".snd"},
    {"CAF", "caff"},
    {"AMR", "#!AMR"},
    {"WavPack", "wvpk"},
    {"Monkey's Audio", "MAC "},
    {"AC-3", "\x0B\x77"},
    {"FLAC in Ogg",
     "\x7F"
     "FLAC",
     true},
    {"Speex", "Speex   ", true},
};

const UnsupportedAudioFormat* unsupported_audio_format_of(std::span<const uint8_t> bytes) {
  for (const UnsupportedAudioFormat& each : kUnsupportedAudioFormats) {
    if (each.in_ogg ? is_ogg_of(bytes, each.begins) : has_text(bytes, each.begins)) return &each;
  }
  return nullptr;
}

class UnsupportedAudioDecoder final : public AudioDecoder {
 public:
  Result<AudioHeader> read_header(const ByteRanges& file) override {
    const Result<std::span<const uint8_t>> first = file.at(0, kAudioSignature);
    if (!first) return first.error();
    const UnsupportedAudioFormat* const found = unsupported_audio_format_of(*first);
    return unsupported_audio(found ? found->name : "other", "is in an unsupported format",
                             "convert it once, without loss: ffmpeg -i FILE out.flac");
  }
  Result<void> decode(const AudioJob& job) override {
    Result<AudioHeader> header = read_header(job.file);
    return header ? Result<void>() : Result<void>(std::move(header.error()));
  }
};

const AudioCodecRecord kForeign{
    .name = "other-sounds",
    .doc =
        "AIFF, AU, CAF, AMR, WavPack, Monkey's Audio, AC-3, and FLAC or Speex in Ogg: "
        "recognized and rejected (HR0352), with a command that converts them.",
    .oracle = "none: these are not decoded",
    .suffixes = {".aiff", ".aif", ".aifc", ".au", ".snd", ".caf", ".amr", ".wv", ".ape", ".wma",
                 ".ac3", ".spx"},
    .sniff =
        [](std::span<const uint8_t> bytes) {
          return unsupported_audio_format_of(bytes) != nullptr;
        },
    .make = []() -> std::unique_ptr<AudioDecoder> {
      return std::make_unique<UnsupportedAudioDecoder>();
    }};
const Register<AudioCodecRecord> registered_unsupported_audio(kForeign);

}  // namespace
}  // namespace headrace
