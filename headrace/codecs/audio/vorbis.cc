// SPDX-License-Identifier: Apache-2.0
// Vorbis in Ogg, via libvorbisfile: decoding starts at the page before the window's first frame.
#define OV_EXCLUDE_STATIC_CALLBACKS
#include <vorbis/vorbisfile.h>

#include <algorithm>
#include <cstring>

#include "headrace/base/registry.h"
#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/audio/ogg_pages.h"
#include "headrace/codecs/audio/range_reader.h"
#include "headrace/codecs/run_time_library.h"

namespace headrace {
namespace {

constexpr std::string_view kVorbisName = "Vorbis";
// A one-byte packet, with its entry in the page's table, represents at most 4096 frames.
constexpr int64_t kMaxVorbisFramesPerByte = 4096 / 2;

struct VorbisLibrary {
  RunTimeLibrary library{"libvorbisfile.so.3", "libvorbisfile3"};
  decltype(&ov_open_callbacks) open = nullptr;
  decltype(&ov_clear) clear = nullptr;
  decltype(&ov_info) info = nullptr;
  decltype(&ov_streams) streams = nullptr;
  decltype(&ov_pcm_total) total = nullptr;
  decltype(&ov_pcm_seek) seek = nullptr;
  decltype(&ov_read_float) read = nullptr;

  VorbisLibrary() {
    library.find(open, "ov_open_callbacks");
    library.find(clear, "ov_clear");
    library.find(info, "ov_info");
    library.find(streams, "ov_streams");
    library.find(total, "ov_pcm_total");
    library.find(seek, "ov_pcm_seek");
    library.find(read, "ov_read_float");
  }
};

const VorbisLibrary& vorbis_library() {
  static const VorbisLibrary library;
  return library;
}

size_t read_bytes(void* to, size_t size, size_t count, void* client) {
  return size == 0 ? 0 : static_cast<RangeReader*>(client)->read(to, size * count) / size;
}
int seek_bytes(void* client, ogg_int64_t offset, int whence) {
  return static_cast<RangeReader*>(client)->seek(offset, whence) ? 0 : -1;
}
long tell_bytes(void* client) { return static_cast<long>(static_cast<RangeReader*>(client)->at()); }

// Opens a file at its first frame.
class VorbisFile {
 public:
  explicit VorbisFile(const ByteRanges& bytes) : reader(bytes) {
    const VorbisLibrary& vorbis = vorbis_library();
    if (!vorbis.library.is_open()) {
      result = vorbis.library.missing();
      return;
    }
    const ov_callbacks callbacks{read_bytes, seek_bytes, nullptr, tell_bytes};
    opened_ = vorbis.open(&reader, &file, nullptr, 0, callbacks) == 0;
    const vorbis_info* const info = opened_ ? vorbis.info(&file, -1) : nullptr;
    if (!info) {
      result = reader.error() ? *reader.error()
                              : corrupt_audio(kVorbisName, "libvorbisfile finds no stream in it");
    } else if (vorbis.streams(&file) != 1) {
      result = unsupported_audio(kVorbisName, "contains several chained streams",
                                 "decode it once and write one stream (ffmpeg, sox)");
    } else {
      header = {.frames = vorbis.total(&file, -1),
                .channels = info->channels,
                .sample_rate =
                    info->rate > kMaxSampleRate ? kMaxSampleRate + 1 : static_cast<int>(info->rate),
                .working_bytes = (size_t{1} << 20) + size_t{1 << 16} * size_t(info->channels)};
      result = check_audio_header(kVorbisName, header, bytes.size(), kMaxVorbisFramesPerByte);
    }
  }
  ~VorbisFile() {
    if (opened_) vorbis_library().clear(&file);
  }
  VorbisFile(const VorbisFile&) = delete;
  VorbisFile& operator=(const VorbisFile&) = delete;

  OggVorbis_File file{};
  AudioHeader header;
  Result<void> result;
  RangeReader reader;

 private:
  bool opened_ = false;
};

class VorbisDecoder final : public AudioDecoder {
 public:
  Result<AudioHeader> read_header(const ByteRanges& bytes) override {
    if (Result<void> whole = check_ogg_pages(kVorbisName, bytes); !whole)
      return std::move(whole.error());
    VorbisFile file(bytes);
    if (!file.result) return std::move(file.result.error());
    return file.header;
  }

  Result<void> decode(const AudioJob& job) override {
    const VorbisLibrary& vorbis = vorbis_library();
    VorbisFile file(job.file);
    if (!file.result) return std::move(file.result);
    if (job.begin > 0 && vorbis.seek(&file.file, job.begin) != 0) {
      if (file.reader.error()) return *file.reader.error();
      return corrupt_audio(kVorbisName, "cannot seek to its frame " + std::to_string(job.begin));
    }
    for (int64_t done = 0; done < job.count;) {
      float** planes = nullptr;
      int section = 0;
      const auto most = static_cast<int>(std::min<int64_t>(job.count - done, 1 << 20));
      const long frames = vorbis.read(&file.file, &planes, most, &section);
      if (file.reader.error()) return *file.reader.error();
      if (frames == 0) return truncated_audio(kVorbisName, job.begin + done, file.header.frames);
      if (frames < 0) {
        return corrupt_audio(kVorbisName, "pages are damaged or missing after frame " +
                                              std::to_string(job.begin + done));
      }
      for (int c = 0; c < file.header.channels; ++c) {
        std::memcpy(job.planes + c * job.stride + done, planes[c],
                    static_cast<size_t>(frames) * sizeof(float));
      }
      done += frames;
    }
    return {};
  }
};

const AudioCodecRecord kVorbis{
    .name = "vorbis",
    .doc = "Vorbis in Ogg, one stream, via libvorbisfile.",
    .oracle = "libsndfile, within 1e-5 of full scale",
    .suffixes = {".ogg", ".oga"},
    .sniff = [](std::span<const uint8_t> bytes) { return is_ogg_of(bytes, "\x01vorbis"); },
    .make = []() -> std::unique_ptr<AudioDecoder> { return std::make_unique<VorbisDecoder>(); },
    .library = []() -> const RunTimeLibrary& { return vorbis_library().library; }};
const Register<AudioCodecRecord> registered_vorbis(kVorbis);

}  // namespace
}  // namespace headrace
