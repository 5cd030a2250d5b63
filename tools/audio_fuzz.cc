// SPDX-License-Identifier: Apache-2.0
// The fuzz target of an audio codec: any bytes give an error, or exactly the samples of the window,
// which equal that slice of the whole file if the codec is lossless. The build makes one for each
// folder fuzz/NAME that is named as a codec's file.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/registry.h"
#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/audio/ogg_pages.h"

namespace headrace {
namespace {

Result<void> decode(AudioDecoder& decoder, std::span<const uint8_t> bytes,
                    const AudioHeader& header, int64_t begin, int64_t count,
                    std::vector<float>& samples) {
  samples.assign(static_cast<size_t>(count * header.channels), 0.5f);
  return decoder.decode(
      {.file = bytes, .begin = begin, .count = count, .planes = samples.data(), .stride = count});
}

// Corrects the checksums of an Ogg file's pages.
void repair_checksums(std::span<uint8_t> bytes) {
  while (const size_t size = ogg_page_bytes(bytes)) {
    const uint32_t sum = ogg_checksum(bytes.first(size));
    for (size_t i = 0; i < 4; ++i) {
      bytes[kOggChecksumAt + i] = static_cast<uint8_t>(sum >> 8 * i);
    }
    bytes = bytes.subspan(size);
  }
}

}  // namespace
}  // namespace headrace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Nearly every mutation of an Ogg file would fail at a page's checksum, so most of them get valid
// ones.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  constexpr std::string_view kName = HEADRACE_FUZZED;
  constexpr bool kIsOgg = kName == "opus" || kName == "vorbis";
  size = LLVMFuzzerMutate(data, size, max_size);
  if (kIsOgg && seed % 8 != 0) headrace::repair_checksums({data, size});
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  constexpr int64_t kMax = int64_t{1} << 20;
  static const AudioCodecRecord& codec = *Registry<AudioCodecRecord>::find(HEADRACE_FUZZED);
  static const auto decoder = codec.make();
  Buffer buffer(size);
  std::copy(data, data + size, buffer.data());
  const Result<AudioHeader> header = decoder->read_header(buffer.bytes());
  if (!header) return 0;
  if (header->channels < 1 || header->channels > kMaxAudioChannels || header->frames < 0 ||
      header->sample_rate < 1 || header->sample_rate > kMaxSampleRate) {
    std::abort();
  }
  if (header->frames == 0 || header->frames * header->channels > kMax) return 0;
  std::vector<float> whole, part;
  const bool good = bool(decode(*decoder, buffer.bytes(), *header, 0, header->frames, whole));
  const auto pick = [&](size_t i, int64_t below) {
    return size == 0 ? 0 : (data[size - 1 - i % size] * int64_t{257} + int64_t(i)) % below;
  };
  const int64_t begin = pick(0, header->frames);
  const int64_t count = 1 + pick(1, header->frames - begin);
  const bool part_good = bool(decode(*decoder, buffer.bytes(), *header, begin, count, part));
  if (!good || !part_good || !codec.oracle.ends_with("bit for bit")) return 0;
  for (int c = 0; c < header->channels; ++c) {
    const float* const expected = whole.data() + c * header->frames + begin;
    if (std::memcmp(expected, part.data() + c * count, size_t(count) * sizeof(float)) != 0) {
      std::abort();
    }
  }
  return 0;
}
