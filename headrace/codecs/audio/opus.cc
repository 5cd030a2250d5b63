// SPDX-License-Identifier: Apache-2.0
// Opus in Ogg, via libopusfile: always at 48 kHz, its only output rate. Samples before the window
// are decoded, too, as far as the window depends on them (opus_packets.h).
#include <opusfile.h>

#include <algorithm>
#include <array>

#include "headrace/base/registry.h"
#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/audio/ogg_pages.h"
#include "headrace/codecs/audio/opus_packets.h"
#include "headrace/codecs/audio/range_reader.h"
#include "headrace/codecs/run_time_library.h"
#include "headrace/kernels/audio/samples.h"

namespace headrace {
namespace {

constexpr std::string_view kOpusName = "Opus";
constexpr int kOpusRate = 48000;
// A one-byte packet, with its entry in the page's table, represents at most 120 ms.
constexpr int64_t kMaxOpusFramesPerByte = 5760 / 2;

struct OpusLibrary {
  RunTimeLibrary library{"libopusfile.so.0", "libopusfile0"};
  decltype(&op_open_callbacks) open = nullptr;
  decltype(&op_free) free = nullptr;
  decltype(&op_link_count) links = nullptr;
  decltype(&op_channel_count) channels = nullptr;
  decltype(&op_pcm_total) total = nullptr;
  decltype(&op_pcm_seek) seek = nullptr;
  decltype(&op_read_float) read = nullptr;

  OpusLibrary() {
    library.find(open, "op_open_callbacks");
    library.find(free, "op_free");
    library.find(links, "op_link_count");
    library.find(channels, "op_channel_count");
    library.find(total, "op_pcm_total");
    library.find(seek, "op_pcm_seek");
    library.find(read, "op_read_float");
  }
};

const OpusLibrary& opus_library() {
  static const OpusLibrary library;
  return library;
}

// Opens a file at its first frame.
class OpusFile {
 public:
  explicit OpusFile(const ByteRanges& bytes) : reader(bytes) {
    const OpusLibrary& opus = opus_library();
    if (!opus.library.is_open()) {
      result = opus.library.missing();
      return;
    }
    int error = 0;
    constexpr OpusFileCallbacks kCallbacks{on_read, on_seek, on_tell, nullptr};
    file = opus.open(&reader, &kCallbacks, nullptr, 0, &error);
    if (!file) {
      result = reader.error() ? *reader.error()
               : error == OP_EFAULT
                   ? too_large_audio(kOpusName)
                   : corrupt_audio(kOpusName, "libopusfile finds no stream in it (its error " +
                                                  std::to_string(error) + ")");
      return;
    }
    if (opus.links(file) != 1) {
      result = unsupported_audio(kOpusName, "contains several chained streams",
                                 "decode it once and write one stream (ffmpeg, sox)");
      return;
    }
    header = {.frames = opus.total(file, -1),
              .channels = opus.channels(file, -1),
              .sample_rate = kOpusRate,
              .working_bytes = size_t{1} << 20};
    result = check_audio_header(kOpusName, header, bytes.size(), kMaxOpusFramesPerByte);
  }
  ~OpusFile() {
    if (file) opus_library().free(file);
  }
  OpusFile(const OpusFile&) = delete;
  OpusFile& operator=(const OpusFile&) = delete;

  OggOpusFile* file = nullptr;
  AudioHeader header;
  Result<void> result;
  RangeReader reader;

 private:
  static int on_read(void* client, unsigned char* to, int bytes) {
    auto& reader = *static_cast<RangeReader*>(client);
    const size_t read = reader.read(to, static_cast<size_t>(bytes));
    return reader.error() ? -1 : static_cast<int>(read);
  }
  static int on_seek(void* client, opus_int64 offset, int whence) {
    return static_cast<RangeReader*>(client)->seek(offset, whence) ? 0 : -1;
  }
  static opus_int64 on_tell(void* client) {
    return static_cast<opus_int64>(static_cast<RangeReader*>(client)->at());
  }
};

class OpusAudioDecoder final : public AudioDecoder {
 public:
  Result<AudioHeader> read_header(const ByteRanges& bytes) override {
    if (Result<void> whole = check_ogg_pages(kOpusName, bytes); !whole)
      return std::move(whole.error());
    OpusFile file(bytes);
    if (!file.result) return std::move(file.result.error());
    return file.header;
  }

  Result<void> decode(const AudioJob& job) override {
    const OpusLibrary& opus = opus_library();
    OpusFile file(job.file);
    if (!file.result) return std::move(file.result);
    const Result<int64_t> start = opus_start(job.file, job.begin);
    if (!start) return start.error();
    const int64_t from = *start;
    if (from > 0 && opus.seek(file.file, from) != 0) {
      if (file.reader.error()) return *file.reader.error();
      return corrupt_audio(kOpusName, "cannot seek to its frame " + std::to_string(from));
    }
    const auto channels = static_cast<size_t>(file.header.channels);
    for (int64_t done = from - job.begin; done < job.count;) {
      const int frames = opus.read(file.file, block_.data(), int(block_.size()), nullptr);
      if (file.reader.error()) return *file.reader.error();
      if (frames == 0) return truncated_audio(kOpusName, job.begin + done, file.header.frames);
      if (frames < 0) {
        return corrupt_audio(kOpusName, "pages are damaged or missing after frame " +
                                            std::to_string(job.begin + done));
      }
      const int64_t unwanted = std::clamp<int64_t>(-done, 0, frames);
      const int64_t to = done + unwanted;
      const int64_t taken = std::min<int64_t>(frames - unwanted, job.count - to);
      for (size_t c = 0; c < channels && taken > 0; ++c) {
        const float* const first = block_.data() + static_cast<size_t>(unwanted) * channels + c;
        samples_from_float32(reinterpret_cast<const uint8_t*>(first), channels * sizeof(float),
                             static_cast<size_t>(taken),
                             job.planes + static_cast<int64_t>(c) * job.stride + to);
      }
      done += frames;
    }
    return {};
  }

 private:
  std::array<float, 5760 * 8> block_;  // a packet with 8 channels
};

const AudioCodecRecord kOpus{
    .name = "opus",
    .doc = "Opus in Ogg, one stream, via libopusfile; always 48 kHz.",
    .oracle =
        "libopusfile's output for the whole file, within 1e-5 of full scale; within 1e-2 in "
        "windows that begin after more than 60 seconds of SILK",
    .suffixes = {".opus"},
    .sniff = [](std::span<const uint8_t> bytes) { return is_ogg_of(bytes, "OpusHead"); },
    .make = []() -> std::unique_ptr<AudioDecoder> { return std::make_unique<OpusAudioDecoder>(); },
    .library = []() -> const RunTimeLibrary& { return opus_library().library; }};
const Register<AudioCodecRecord> registered_opus(kOpus);

}  // namespace
}  // namespace headrace
