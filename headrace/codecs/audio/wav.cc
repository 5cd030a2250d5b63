// SPDX-License-Identifier: Apache-2.0
// WAV, by our own reader: a range is converted directly, block by block.
#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/audio/wav_header.h"
#include "headrace/kernels/audio/samples.h"

namespace headrace {
namespace {

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
    return header->sound;
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
      for (int c = 0; c < header->sound.channels; ++c) {
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
