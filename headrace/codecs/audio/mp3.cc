// SPDX-License-Identifier: Apache-2.0
// MP3 (MPEG audio, layers I to III), via libmpg123: without the delay and padding that LAME's tag
// specifies; decoding starts some frames before the window, as the overlap requires.
#include <mpg123.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/base/registry.h"
#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/audio/audio_tags.h"
#include "headrace/codecs/audio/range_reader.h"
#include "headrace/codecs/run_time_library.h"
#include "headrace/kernels/audio/samples.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {
namespace {

// From the four bytes at the start of every frame (ISO/IEC 11172-3, 2.4.2.3; 13818-3).
bool is_mpeg_frame(std::span<const uint8_t> bytes, size_t at = 0) {
  if (at + 4 > bytes.size()) return false;
  const uint8_t a = bytes[at + 1], b = bytes[at + 2];
  return bytes[at] == 0xFF && (a & 0xE0) == 0xE0 && (a & 0x18) != 0x08 && (a & 0x06) != 0 &&
         (b & 0xF0) != 0xF0 && (b & 0x0C) != 0x0C;
}

// The frame's length in bytes; 0 if it is not stated (free format). REQUIRES: is_mpeg_frame().
size_t mpeg_frame_bytes(std::span<const uint8_t> bytes, size_t at = 0) {
  using Rates = std::array<uint16_t, 15>;  // kbit/s
  constexpr Rates kOne{0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448};
  constexpr Rates kTwo{0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384};
  constexpr Rates kThree{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320};
  constexpr Rates kOneLow{0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256};
  constexpr Rates kLow{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160};
  constexpr std::array<uint32_t, 3> kHertz{44100, 48000, 32000};
  const int version = bytes[at + 1] >> 3 & 3, layer = 4 - (bytes[at + 1] >> 1 & 3);
  const bool low = version != 3;  // MPEG-2 and MPEG-2.5
  const Rates& rates = layer == 1   ? (low ? kOneLow : kOne)
                       : low        ? kLow
                       : layer == 2 ? kTwo
                                    : kThree;
  const uint32_t bits = rates[bytes[at + 2] >> 4] * 1000u;
  const uint32_t hertz = kHertz[bytes[at + 2] >> 2 & 3] >> (version == 3   ? 0
                                                            : version == 2 ? 1
                                                                           : 2);
  const uint32_t padding = bytes[at + 2] >> 1 & 1;
  if (layer == 1) return (12 * bits / hertz + padding) * 4;
  return (layer == 3 && low ? 72 : 144) * bits / hertz + padding;
}

// Whether two consecutive frames of the same kind are somewhere in [begin, end).
Result<bool> mpeg_frames_follow(const ByteRanges& file, uint64_t begin, uint64_t end) {
  constexpr uint64_t kBlock = 1 << 16, kLongestFrame = 2881, kHeader = 4;
  for (uint64_t at = begin; at < end; at += kBlock) {
    const Result<std::span<const uint8_t>> found =
        file.at(at, std::min(end - at, kBlock + kLongestFrame + kHeader));
    if (!found) return found.error();
    const std::span<const uint8_t> bytes = *found;
    for (size_t i = 0; i < std::min<uint64_t>(bytes.size(), kBlock); ++i) {
      if (!is_mpeg_frame(bytes, i)) continue;
      const size_t next = i + mpeg_frame_bytes(bytes, i);
      const bool same_kind = next > i && is_mpeg_frame(bytes, next) &&
                             bytes[i + 1] >> 1 == bytes[next + 1] >> 1 &&
                             (bytes[i + 2] & 0x0C) == (bytes[next + 2] & 0x0C);
      if (same_kind) return true;
    }
  }
  return false;
}

constexpr std::string_view kMp3Name = "MP3";
// MPEG frames to decode before the target of a seek, for the bit reservoir and the overlap of layer
// III.
constexpr long kPreframes = 10;
constexpr int64_t kMp3Frame = 1152;  // samples of the largest frame
constexpr int64_t kMaxMp3FramesPerByte = kMp3Frame / 24;

struct Mp3Library {
  RunTimeLibrary library{"libmpg123.so.0", "libmpg123-0"};
  decltype(&mpg123_init) init = nullptr;
  decltype(&mpg123_new) make = nullptr;
  decltype(&mpg123_delete) free = nullptr;
  decltype(&mpg123_param) param = nullptr;
  decltype(&mpg123_format_none) format_none = nullptr;
  decltype(&mpg123_format) format = nullptr;
  decltype(&mpg123_rates) rates = nullptr;
  int (*replace_reader)(mpg123_handle*, ssize_t (*)(void*, void*, size_t),
                        off_t (*)(void*, off_t, int), void (*)(void*)) = nullptr;
  decltype(&mpg123_open_handle) open = nullptr;
  decltype(&mpg123_close) close = nullptr;
  decltype(&mpg123_getformat) getformat = nullptr;
  decltype(&mpg123_scan) scan = nullptr;
  off_t (*length)(mpg123_handle*) = nullptr;
  off_t (*seek)(mpg123_handle*, off_t, int) = nullptr;
  decltype(&mpg123_read) read = nullptr;
  decltype(&mpg123_errcode) errcode = nullptr;

  Mp3Library() {
    library.find(init, "mpg123_init");
    library.find(make, "mpg123_new");
    library.find(free, "mpg123_delete");
    library.find(param, "mpg123_param");
    library.find(format_none, "mpg123_format_none");
    library.find(format, "mpg123_format");
    library.find(rates, "mpg123_rates");
    library.find(replace_reader, "mpg123_replace_reader_handle");
    library.find(open, "mpg123_open_handle");
    library.find(close, "mpg123_close");
    library.find(getformat, "mpg123_getformat");
    library.find(scan, "mpg123_scan");
    library.find(length, "mpg123_length");
    library.find(seek, "mpg123_seek");
    library.find(read, "mpg123_read");
    library.find(errcode, "mpg123_errcode");
    if (library.is_open() && init() != MPG123_OK) library.refuse("mpg123_init() failed");
  }
};

const Mp3Library& mp3_library() {
  static const Mp3Library library;
  return library;
}

// Whether the first frame is not audio, but states how many follow: the tag of Xing and LAME.
Result<bool> tells_its_length(const ByteRanges& file) {
  const Result<uint64_t> begin = offset_after_id3(file);
  if (!begin) return begin.error();
  const Result<std::span<const uint8_t>> first = file.at(*begin, 64);
  if (!first) return first.error();
  const std::span<const uint8_t> bytes = *first;
  if (!is_mpeg_frame(bytes)) return false;
  const bool mpeg1 = (bytes[1] & 0x18) == 0x18, mono = bytes[3] >> 6 == 3;
  const bool has_checksum = (bytes[1] & 1) == 0;
  const size_t at = 4 + (has_checksum ? 2 : 0) + (mpeg1 ? (mono ? 17 : 32) : (mono ? 9 : 17));
  if (at + 8 > bytes.size()) return false;
  const std::string_view name(reinterpret_cast<const char*>(bytes.data()) + at, 4);
  return (name == "Xing" || name == "Info") && (bytes[at + 7] & 1) != 0;
}

bool begins_like_mp3(std::span<const uint8_t> bytes) {
  return id3_bytes(bytes) > 0 || is_mpeg_frame(bytes);  // the tag may be longer than the visible
                                                        // part
}

class Mp3Decoder final : public AudioDecoder {
 public:
  ~Mp3Decoder() override {
    if (handle_) mp3_library().free(handle_);
  }

  Result<AudioHeader> read_header(const ByteRanges& file) override {
    const Opened opened(*this, file);
    if (!opened.result) return opened.result.error();
    const Mp3Library& mp3 = mp3_library();
    const Result<bool> told = tells_its_length(file);
    if (!told) return told.error();
    const int64_t promised = *told ? mp3.length(handle_) : 0;
    farthest_ = 0;
    if (mp3.scan(handle_) != MPG123_OK) return broken();
    const uint64_t scanned = farthest_;
    AudioHeader header{.frames = mp3.length(handle_),
                       .channels = opened.channels,
                       .sample_rate = static_cast<int>(opened.rate),
                       .working_bytes = size_t{1} << 17};
    if (reader_.error()) return *reader_.error();
    // Some writers count the tag's own frame.
    if (promised - header.frames > kMp3Frame) {
      return truncated_audio(kMp3Name, header.frames, promised);
    }
    if (header.frames < 0) return corrupt_audio(kMp3Name, "its length is unknown");
    if (Result<void> good = *told ? check_end(file, scanned) : Result<void>(); !good) {
      return std::move(good.error());
    }
    if (Result<void> good = check_audio_header(kMp3Name, header, file.size(), kMaxMp3FramesPerByte);
        !good) {
      return std::move(good.error());
    }
    return header;
  }

  Result<void> decode(const AudioJob& job) override {
    const Opened opened(*this, job.file);
    if (!opened.result) return opened.result.error();
    const Mp3Library& mp3 = mp3_library();
    if (job.begin > 0 && mp3.seek(handle_, job.begin, SEEK_SET) != job.begin) return broken();
    const auto channels = static_cast<size_t>(opened.channels);
    for (int64_t done = 0; done < job.count;) {
      const int64_t wanted = std::min<int64_t>(job.count - done, int64_t(kBlock / channels));
      size_t bytes = 0;
      const int status = mp3.read(handle_, reinterpret_cast<unsigned char*>(block_),
                                  size_t(wanted) * channels * sizeof(float), &bytes);
      const auto frames = static_cast<int64_t>(bytes / (channels * sizeof(float)));
      for (size_t c = 0; c < channels; ++c) {
        samples_from_float32(reinterpret_cast<const uint8_t*>(block_ + c), channels * sizeof(float),
                             size_t(frames), job.planes + int64_t(c) * job.stride + done);
      }
      done += frames;
      if (done == job.count) break;
      if (status == MPG123_NEW_FORMAT && frames == 0) {
        long rate = 0;
        int now = 0, encoding = 0;
        mp3.getformat(handle_, &rate, &now, &encoding);
        if (rate == opened.rate && now == opened.channels) continue;
        return corrupt_audio(kMp3Name, "its sample rate or channel count changes midway");
      }
      if (reader_.error()) return *reader_.error();
      if (status == MPG123_DONE || (status == MPG123_OK && frames == 0)) {
        return truncated_audio(kMp3Name, job.begin + done, job.begin + job.count);
      }
      if (status != MPG123_OK) return broken();
    }
    return {};
  }

 private:
  static constexpr size_t kBlock = 4096;  // samples

  // Opens a file at its first frame; closes it at the end.
  struct Opened {
    Opened(Mp3Decoder& decoder, const ByteRanges& file) : self(decoder) {
      result = decoder.open(file, rate, channels);
    }
    ~Opened() {
      if (self.handle_) mp3_library().close(self.handle_);
      self.reader_ = RangeReader({});  // releases the file
    }
    Mp3Decoder& self;
    long rate = 0;
    int channels = 0;
    Result<void> result;
  };

  // libmpg123 stops where the Xing tag says, which counts the frames of the original file: of two
  // concatenated files it would decode only one.
  static Result<void> check_end(const ByteRanges& file, uint64_t scanned) {
    constexpr uint64_t kHeader = 4;  // start of the next frame, which may have been read already
    const Result<uint64_t> end = start_of_end_tags(file);
    if (!end) return end.error();
    const Result<bool> more = mpeg_frames_follow(file, scanned - std::min(scanned, kHeader), *end);
    if (!more) return more.error();
    if (!*more) return {};
    return unsupported_audio(
        kMp3Name,
        "has more frames than its Xing tag says: several concatenated files, or "
        "a truncated one",
        "rewrite it without loss: ffmpeg -i in.mp3 -c copy out.mp3");
  }

  Result<void> prepare() {
    const Mp3Library& mp3 = mp3_library();
    if (!mp3.library.is_open()) return mp3.library.missing();
    if (handle_) return {};
    handle_ = mp3.make(nullptr, nullptr);
    if (!handle_) return too_large_audio(kMp3Name);
    constexpr long kFlags = MPG123_QUIET | MPG123_GAPLESS | MPG123_FORCE_FLOAT | MPG123_SKIP_ID3V2 |
                            MPG123_NO_FRANKENSTEIN;
    mp3.param(handle_, MPG123_ADD_FLAGS, kFlags, 0);
    mp3.param(handle_, MPG123_REMOVE_FLAGS, MPG123_FUZZY, 0);
    mp3.param(handle_, MPG123_RVA, MPG123_RVA_OFF,
              0);  // samples unchanged, ignoring the stated gain
    mp3.param(handle_, MPG123_PREFRAMES, kPreframes, 0);
    mp3.param(handle_, MPG123_INDEX_SIZE, -1, 0);
    mp3.param(handle_, MPG123_RESYNC_LIMIT, 1 << 16, 0);
    mp3.replace_reader(handle_, on_read, on_seek, nullptr);
    return {};
  }

  Result<void> open(const ByteRanges& file, long& rate, int& channels) {
    if (Result<void> ready = prepare(); !ready) return ready;
    const Mp3Library& mp3 = mp3_library();
    reader_ = RangeReader(file);
    int encoding = 0;
    mp3.format_none(handle_);
    const long* rates = nullptr;
    size_t count = 0;
    mp3.rates(&rates, &count);
    for (size_t i = 0; i < count; ++i) {
      mp3.format(handle_, rates[i], MPG123_MONO | MPG123_STEREO, MPG123_ENC_FLOAT_32);
    }
    if (mp3.open(handle_, this) != MPG123_OK ||
        mp3.getformat(handle_, &rate, &channels, &encoding) != MPG123_OK) {
      return broken();
    }
    return {};
  }

  Error broken() const {
    if (reader_.error()) return *reader_.error();
    const int code = mp3_library().errcode(handle_);
    if (code == MPG123_OUT_OF_MEM) return too_large_audio(kMp3Name);
    return corrupt_audio(kMp3Name, "libmpg123 cannot continue (its error " + std::to_string(code) +
                                       ") at byte " + std::to_string(reader_.at()));
  }

  static ssize_t on_read(void* client, void* to, size_t bytes) {
    auto& self = *static_cast<Mp3Decoder*>(client);
    const size_t read = self.reader_.read(to, bytes);
    self.farthest_ = std::max(self.farthest_, self.reader_.at());
    return self.reader_.error() ? -1 : static_cast<ssize_t>(read);
  }
  static off_t on_seek(void* client, off_t offset, int whence) {
    RangeReader& reader = static_cast<Mp3Decoder*>(client)->reader_;
    return reader.seek(offset, whence) ? static_cast<off_t>(reader.at()) : -1;
  }

  mpg123_handle* handle_ = nullptr;
  RangeReader reader_{{}};
  uint64_t farthest_ = 0;  // end of what has been read
  float block_[kBlock];
};

const AudioCodecRecord kMp3{
    .name = "mp3",
    .doc =
        "MP3, and MPEG audio layers I and II, via libmpg123; the encoder delay and padding in "
        "LAME's tag are removed.",
    .oracle = "libsndfile, within 1e-5 of full scale",
    .suffixes = {".mp3", ".mp2"},
    .sniff = begins_like_mp3,
    .make = []() -> std::unique_ptr<AudioDecoder> { return std::make_unique<Mp3Decoder>(); },
    .library = []() -> const RunTimeLibrary& { return mp3_library().library; }};
const Register<AudioCodecRecord> registered_mp3(kMp3);

}  // namespace
}  // namespace headrace
