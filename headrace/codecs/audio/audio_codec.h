// SPDX-License-Identifier: Apache-2.0
// Audio codecs: bytes -> samples of a time window. Each codec has its own file, which registers an
// AudioCodecRecord.
//
// A codec record is a constant, shared by all threads. It makes AudioDecoders, each of which is for
// one thread and keeps its library's state between clips.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/codecs/media/media_options.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

class RunTimeLibrary;

// What is known about audio before a sample is decoded.
struct AudioHeader {
  int64_t frames = 0;   // samples per channel; the exact number that decoding gives
  int channels = 0;     // 1 to kMaxAudioChannels
  int sample_rate = 0;  // frames per second, 1 to kMaxSampleRate
  double start = 0;     // time of frame 0 on the file's clock, in seconds; for the audio of videos
  size_t working_bytes = 0;  // memory for decoding, in addition to the samples
};

inline constexpr int kMaxAudioChannels = 64;
inline constexpr int kMaxSampleRate = 768000;

// Frames [begin, begin + count) of a clip. Channel c of frame i goes to planes[c * stride + i],
// relative to full scale: b-bit integers are divided by 2^(b-1).
struct AudioJob {
  ByteRanges file;               // REQUIRES, if in memory: Buffer::kPadding readable bytes after it
  int64_t begin = 0, count = 0;  // REQUIRES: inside the header's frames
  float* planes = nullptr;
  int64_t stride = 0;
  MediaOptions media = {};
};

class AudioDecoder {
 public:
  virtual ~AudioDecoder() = default;
  // Does not allocate memory in proportion to the header's numbers.
  virtual Result<AudioHeader> read_header(const ByteRanges& file) = 0;
  // REQUIRES: read_header() of this file succeeded. Returns all frames of the window, or an error;
  // reads and decodes only what the window needs.
  virtual Result<void> decode(const AudioJob& job) = 0;
};

struct AudioCodecRecord {
  std::string_view name;  // "wav"
  std::string_view doc;
  std::string_view oracle;                 // the library whose samples it matches, and the
                                           // tolerance
  std::vector<std::string_view> suffixes;  // ".wav", lower case; a hint for listings
  bool (*sniff)(std::span<const uint8_t> first_bytes);
  std::unique_ptr<AudioDecoder> (*make)();
  // A library that is loaded when the codec is first used; null if the codec is built in.
  const RunTimeLibrary& (*library)() = nullptr;
  // Recognizes video containers whose audio this codec reads.
  bool (*sniff_video)(std::span<const uint8_t> first_bytes) = nullptr;
};

// How many leading bytes sniff() needs.
inline constexpr size_t kAudioSignature = 64;
// The codec that recognizes the file's content, after any ID3v2 tags; for a video, the codec of its
// audio. Null if there is none.
Result<const AudioCodecRecord*> audio_codec_of(const ByteRanges& file);
const AudioCodecRecord* audio_codec_of(std::span<const uint8_t> bytes);
// True for audio files; videos do not count, even if they have audio.
bool begins_like_audio(std::span<const uint8_t> bytes);

// The decoders of one thread.
class AudioDecoders {
 public:
  AudioDecoder& of(const AudioCodecRecord& codec);
  // Decoding time since the last call.
  void add_seconds(double seconds) { seconds_ += seconds; }
  double take_seconds() { return std::exchange(seconds_, 0); }

 private:
  double seconds_ = 0;
  std::unordered_map<const AudioCodecRecord*, std::unique_ptr<AudioDecoder>> decoders_;
};

// Errors of audio files, whichever codec finds them. `kind`: "WAV".

Error corrupt_audio(std::string_view kind, std::string what);                        // HR0350
Error truncated_audio(std::string_view kind, int64_t frames, int64_t promised);      // HR0351
Error truncated_audio(std::string_view kind, std::string what);                      // HR0351
Error unsupported_audio(std::string_view kind, std::string what, std::string hint);  // HR0352
Error too_large_audio(std::string_view kind);                                        // HR0353
Error no_audio_track(std::string_view kind);                                         // HR0358

// HR0350 or HR0352 unless rate and channels are plausible, and there are no more frames than this
// many bytes can hold at `frames_per_byte` frames per byte.
Result<void> check_audio_header(std::string_view kind, const AudioHeader& header, size_t bytes,
                                int64_t frames_per_byte);

}  // namespace headrace
