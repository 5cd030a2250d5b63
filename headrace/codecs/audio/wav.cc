// SPDX-License-Identifier: Apache-2.0
// WAV, by our own reader: RIFF, RF64 and BW64 (EBU Tech 3306), WAVE_FORMAT_EXTENSIBLE. A range is
// converted directly, block by block.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/base/registry.h"
#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/image/byte_order.h"
#include "headrace/kernels/audio/samples.h"

namespace headrace {
namespace {

// How a sample is stored, little-endian.
enum class WavSample : uint8_t {
  kUInt8,
  kInt16,
  kInt24,
  kInt32,
  kFloat32,
  kFloat64,
  kALaw,
  kMuLaw
};

int bytes_of(WavSample sample) {
  switch (sample) {
    case WavSample::kUInt8:
    case WavSample::kALaw:
    case WavSample::kMuLaw:
      return 1;
    case WavSample::kInt16:
      return 2;
    case WavSample::kInt24:
      return 3;
    case WavSample::kInt32:
    case WavSample::kFloat32:
      return 4;
    case WavSample::kFloat64:
      return 8;
  }
  return 1;
}

struct WavHeader {
  AudioHeader audio;
  WavSample sample = WavSample::kInt16;
  uint64_t data = 0;  // position of the first frame
  size_t frame_bytes = 0;
};

constexpr std::string_view kWavName = "WAV";
constexpr uint32_t kUnspecified = 0xFFFFFFFF;  // a length that is stored elsewhere, or was unknown
constexpr uint32_t kPcm = 1, kFloat = 3, kALawTag = 6, kMuLawTag = 7, kExtensible = 0xFFFE;
constexpr size_t kChunkHeader = 8, kFirstChunk = 12, kFormatBytes = 16, kExtensibleBytes = 40;

bool says(std::span<const uint8_t> bytes, size_t at, std::string_view word) {
  return at + word.size() <= bytes.size() &&
         std::memcmp(bytes.data() + at, word.data(), word.size()) == 0;
}

uint64_t little_u64(std::span<const uint8_t> bytes, size_t at) {
  return little_u32(bytes, at) | uint64_t{little_u32(bytes, at + 4)} << 32;
}

// Whether the rest of the file consists of chunks: four-letter ids with lengths that fit. True for
// an empty rest.
Result<bool> is_chunks(const ByteRanges& file, uint64_t at) {
  while (at + kChunkHeader <= file.size()) {
    const Result<std::span<const uint8_t>> head = file.at(at, kChunkHeader);
    if (!head) return head.error();
    const uint64_t length = little_u32(*head, 4), room = file.size() - at - kChunkHeader;
    const bool is_word =
        std::ranges::all_of(head->first(4), [](uint8_t c) { return c >= ' ' && c <= '~'; });
    if (!is_word || length > room) return false;
    at += kChunkHeader + length + length % 2;
  }
  return true;
}

// Bytes of samples. A recorder writes a file's lengths at the end: if it was killed, or wrote to a
// pipe, they are 0 or all ones, and the samples extend to the end of the file. An empty data chunk
// is accepted only if chunks follow.
Result<uint64_t> data_bytes(const ByteRanges& file, uint64_t body, uint64_t promised) {
  constexpr uint64_t kUnspecified64 = ~uint64_t{0};
  const uint64_t there = file.size() - body;
  if (promised == kUnspecified || promised == kUnspecified64) return there;
  if (promised > 0 || there == 0) return promised;
  const Result<bool> empty = is_chunks(file, body);
  if (!empty) return empty.error();
  return *empty ? 0 : there;
}

std::string name_of_format(uint32_t tag) {
  switch (tag) {
    case 0x0002:
    case 0x0011:
      return "ADPCM";
    case 0x0031:
      return "GSM 6.10";
    case 0x0050:
    case 0x0055:
      return "MPEG";
    case 0x00FF:
    case 0x1610:
      return "AAC";
    default:
      return "the format " + std::to_string(tag);
  }
}

std::optional<WavSample> sample_from(uint32_t tag, uint32_t bits) {
  if (tag == kPcm) {
    if (bits >= 1 && bits <= 8) return WavSample::kUInt8;
    if (bits > 8 && bits <= 16) return WavSample::kInt16;
    if (bits > 16 && bits <= 24) return WavSample::kInt24;
    if (bits > 24 && bits <= 32) return WavSample::kInt32;
  }
  if (tag == kFloat && bits == 32) return WavSample::kFloat32;
  if (tag == kFloat && bits == 64) return WavSample::kFloat64;
  if (tag == kALawTag && bits == 8) return WavSample::kALaw;
  if (tag == kMuLawTag && bits == 8) return WavSample::kMuLaw;
  return {};
}

Result<void> read_format(std::span<const uint8_t> chunk, WavHeader& header) {
  if (chunk.size() < kFormatBytes) return corrupt_audio(kWavName, "its fmt chunk is too short");
  uint32_t tag = little_u16(chunk, 0);
  const uint32_t channels = little_u16(chunk, 2), rate = little_u32(chunk, 4);
  const uint32_t frame_bytes = little_u16(chunk, 12), bits = little_u16(chunk, 14);
  // Its GUID begins with the format's number; some writers omit the rest.
  if (tag == kExtensible && chunk.size() >= kExtensibleBytes) tag = little_u16(chunk, 24);
  const std::optional<WavSample> sample = sample_from(tag, bits);
  if (!sample) {
    return unsupported_audio(kWavName,
                             "holds " + name_of_format(tag) + " of " + std::to_string(bits) +
                                 " bits per sample; PCM of 8 to 32 bits, float32, float64, A-law "
                                 "and mu-law are supported",
                             "convert it to PCM (sox, ffmpeg)");
  }
  header.sample = *sample;
  header.frame_bytes = size_t{channels} * static_cast<size_t>(bytes_of(*sample));
  if (channels == 0 || frame_bytes != header.frame_bytes) {
    return corrupt_audio(kWavName, "its header declares " + std::to_string(frame_bytes) +
                                       " bytes for a frame of " + std::to_string(channels) +
                                       " channels of " + std::to_string(bits) + " bits");
  }
  header.audio.channels = static_cast<int>(channels);
  if (rate > kMaxSampleRate) {
    return unsupported_audio(kWavName,
                             "has " + std::to_string(rate) + " Hz; up to " +
                                 std::to_string(kMaxSampleRate) + " are supported",
                             "convert it to a lower rate");
  }
  header.audio.sample_rate = static_cast<int>(rate);
  return {};
}

bool begins_like_wav(std::span<const uint8_t> bytes) {
  return (says(bytes, 0, "RIFF") || says(bytes, 0, "RF64") || says(bytes, 0, "BW64")) &&
         says(bytes, 8, "WAVE");
}

// Chunks: an id, a length, that many bytes, and one more if the length is odd.
Result<WavHeader> read_wav_header(const ByteRanges& file) {
  Result<std::span<const uint8_t>> bytes = file.at(0, kFirstChunk);
  if (!bytes) return bytes.error();
  if (!begins_like_wav(*bytes))
    return corrupt_audio(kWavName, "it does not begin with RIFF and WAVE");
  const bool wide = !says(*bytes, 0, "RIFF");
  WavHeader header;
  bool has_format = false;
  uint64_t wide_data = 0;  // size of the data chunk by ds64
  uint64_t at = kFirstChunk;
  while (at + kChunkHeader <= file.size()) {
    bytes = file.at(at, kChunkHeader + kExtensibleBytes);
    if (!bytes) return bytes.error();
    const uint32_t length = little_u32(*bytes, 4);
    const uint64_t body = at + kChunkHeader, there = file.size() - body;
    if (says(*bytes, 0, "data")) {
      if (!has_format) return corrupt_audio(kWavName, "its data chunk comes before its fmt chunk");
      const Result<uint64_t> found =
          data_bytes(file, body, wide && length == kUnspecified ? wide_data : length);
      if (!found) return found.error();
      const uint64_t promised = *found;
      header.data = body;
      header.audio.frames = static_cast<int64_t>(promised / header.frame_bytes);
      // Such a file is too large for 32 bits.
      if (!wide && there - std::min(there, promised) > kUnspecified) {
        return corrupt_audio(kWavName, "its header declares " + std::to_string(promised) +
                                           " bytes of samples, but several gigabytes more follow");
      }
      if (promised > there) {
        return truncated_audio(kWavName, static_cast<int64_t>(there / header.frame_bytes),
                               header.audio.frames);
      }
      if (Result<void> good = check_audio_header(kWavName, header.audio, file.size(), 1); !good) {
        return std::move(good.error());
      }
      return header;
    }
    // A format chunk never needs more than this.
    std::span<const uint8_t> chunk = bytes->subspan(kChunkHeader);
    chunk = chunk.first(std::min<size_t>(chunk.size(), length));
    if (says(*bytes, 0, "ds64") && chunk.size() >= 16) wide_data = little_u64(chunk, 8);
    if (says(*bytes, 0, "fmt ")) {
      if (Result<void> good = read_format(chunk, header); !good) return std::move(good.error());
      has_format = true;
    }
    if (length > there) break;
    at = body + length + length % 2;
  }
  return truncated_audio(kWavName, "ends before its samples begin");
}

// Converts one channel; `from` is the channel's first sample of the window.
void convert_channel(WavSample sample, const uint8_t* from, size_t step, int64_t count, float* to) {
  const auto frames = static_cast<size_t>(count);
  switch (sample) {
    case WavSample::kUInt8:
      return samples_from_uint8(from, step, frames, to);
    case WavSample::kInt16:
      return samples_from_int16(from, step, frames, to);
    case WavSample::kInt24:
      return samples_from_int24(from, step, frames, to);
    case WavSample::kInt32:
      return samples_from_int32(from, step, frames, to);
    case WavSample::kFloat32:
      return samples_from_float32(from, step, frames, to);
    case WavSample::kFloat64:
      return samples_from_float64(from, step, frames, to);
    case WavSample::kALaw:
      return samples_from_a_law(from, step, frames, to);
    case WavSample::kMuLaw:
      return samples_from_mu_law(from, step, frames, to);
  }
}

// Samples cached for one channel are still cached for the others, and the block read from a file
// fits into one window of it.
constexpr size_t kWavBlock = size_t{128} << 10;

class WavDecoder final : public AudioDecoder {
 public:
  Result<AudioHeader> read_header(const ByteRanges& file) override {
    const Result<WavHeader> header = read_wav_header(file);
    if (!header) return header.error();
    return header->audio;
  }

  Result<void> decode(const AudioJob& job) override {
    const Result<WavHeader> header = read_wav_header(job.file);
    if (!header) return header.error();
    const auto block = static_cast<int64_t>(std::max<size_t>(kWavBlock / header->frame_bytes, 1));
    for (int64_t done = 0; done < job.count; done += block) {
      const int64_t count = std::min(block, job.count - done);
      const Result<std::span<const uint8_t>> bytes =
          job.file.at(header->data + static_cast<uint64_t>(job.begin + done) * header->frame_bytes,
                      static_cast<uint64_t>(count) * header->frame_bytes);
      if (!bytes) return bytes.error();
      for (int c = 0; c < header->audio.channels; ++c) {
        convert_channel(header->sample, bytes->data() + c * bytes_of(header->sample),
                        header->frame_bytes, count, job.planes + c * job.stride + done);
      }
    }
    return {};
  }
};

const AudioCodecRecord kWav{
    .name = "wav",
    .doc = "WAV: PCM of 8, 16, 24 and 32 bits, float32, float64, A-law, mu-law; RF64 and BW64.",
    .oracle = "libsndfile, bit for bit",
    .suffixes = {".wav", ".wave"},
    .sniff = begins_like_wav,
    .make = []() -> std::unique_ptr<AudioDecoder> { return std::make_unique<WavDecoder>(); }};
const Register<AudioCodecRecord> registered_wav(kWav);

}  // namespace
}  // namespace headrace
