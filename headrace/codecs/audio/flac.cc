// SPDX-License-Identifier: Apache-2.0
// FLAC, by libFLAC: decoding starts at the block that contains the window's first frame.
#include <FLAC/stream_decoder.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "headrace/base/error.h"
#include "headrace/base/registry.h"
#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/audio/audio_tags.h"
#include "headrace/codecs/audio/range_reader.h"
#include "headrace/codecs/image/byte_order.h"
#include "headrace/codecs/run_time_library.h"
#include "headrace/kernels/audio/samples.h"

namespace headrace {
namespace {

// STREAMINFO, the first block of a FLAC file (RFC 9639, section 8.2).
struct FlacHeader {
  AudioHeader audio;  // frames 0: the file does not say
  int bits = 0;
  int64_t longest_block = 0;  // frames
};

constexpr size_t kMagic = 4, kBlockHeader = 4, kStreamInfo = 34;
constexpr size_t kFlacHeader = kMagic + kBlockHeader + kStreamInfo;
// A block of 65535 equal samples takes at least 8 bytes.
constexpr int64_t kMaxFlacFramesPerByte = 65536 / 8;

bool begins_like_flac(std::span<const uint8_t> bytes) {
  return bytes.size() >= kMagic && std::memcmp(bytes.data(), "fLaC", kMagic) == 0;
}

// Reads the file's first bytes, and its size, both after tags.
Result<FlacHeader> read_flac_header(std::span<const uint8_t> bytes, uint64_t size) {
  if (!begins_like_flac(bytes)) return corrupt_audio("FLAC", "it does not begin with fLaC");
  if (bytes.size() < kFlacHeader) {
    return truncated_audio("FLAC", "ends within its header");
  }
  if ((bytes[kMagic] & 0x7F) != 0 || big_u32(bytes, kMagic) % (1u << 24) != kStreamInfo) {
    return corrupt_audio("FLAC", "its first block is not STREAMINFO");
  }
  const std::span<const uint8_t> info = bytes.subspan(kMagic + kBlockHeader, kStreamInfo);
  FlacHeader header;
  header.longest_block = big_u16(info, 2);
  const uint32_t packed = big_u32(info, 10);  // 20 bits rate, 3 channels - 1, 5 bits - 1, 4 total
  header.audio.sample_rate = static_cast<int>(packed >> 12);
  header.audio.channels = static_cast<int>(packed >> 9 & 7) + 1;
  header.bits = static_cast<int>(packed >> 4 & 31) + 1;
  header.audio.frames = static_cast<int64_t>(uint64_t{packed & 15} << 32 | big_u32(info, 14));
  header.audio.working_bytes =
      size_t{65536} * 2 * sizeof(int32_t) * static_cast<size_t>(header.audio.channels);
  if (Result<void> good = check_audio_header("FLAC", header.audio, size, kMaxFlacFramesPerByte);
      !good) {
    return std::move(good.error());
  }
  return header;
}

constexpr std::string_view kFlacName = "FLAC";

// The version number in the names of the library and its package.
std::string flac_version() {
  return std::to_string(FLAC_API_VERSION_CURRENT - FLAC_API_VERSION_AGE);
}

struct FlacLibrary {
  RunTimeLibrary library{"libFLAC.so." + flac_version(), "libflac" + flac_version()};
  decltype(&FLAC__stream_decoder_new) make = nullptr;
  decltype(&FLAC__stream_decoder_delete) free = nullptr;
  decltype(&FLAC__stream_decoder_init_stream) init = nullptr;
  decltype(&FLAC__stream_decoder_finish) finish = nullptr;
  decltype(&FLAC__stream_decoder_process_single) process_single = nullptr;
  decltype(&FLAC__stream_decoder_process_until_end_of_metadata) process_metadata = nullptr;
  decltype(&FLAC__stream_decoder_seek_absolute) seek = nullptr;
  decltype(&FLAC__stream_decoder_get_state) state = nullptr;
  decltype(&FLAC__stream_decoder_get_decode_position) position = nullptr;
  decltype(&FLAC__stream_decoder_set_metadata_ignore_all) ignore_metadata = nullptr;

  FlacLibrary() {
    library.find(make, "FLAC__stream_decoder_new");
    library.find(free, "FLAC__stream_decoder_delete");
    library.find(init, "FLAC__stream_decoder_init_stream");
    library.find(finish, "FLAC__stream_decoder_finish");
    library.find(process_single, "FLAC__stream_decoder_process_single");
    library.find(process_metadata, "FLAC__stream_decoder_process_until_end_of_metadata");
    library.find(seek, "FLAC__stream_decoder_seek_absolute");
    library.find(state, "FLAC__stream_decoder_get_state");
    library.find(position, "FLAC__stream_decoder_get_decode_position");
    library.find(ignore_metadata, "FLAC__stream_decoder_set_metadata_ignore_all");
  }
};

const FlacLibrary& flac_library() {
  static const FlacLibrary library;
  return library;
}

// One file being decoded by libFLAC, which calls back for bytes and with samples.
class FlacSession {
 public:
  FlacSession(const FlacLibrary& flac, FLAC__StreamDecoder* decoder, const FlacHeader& header,
              RangeReader file)
      : flac_(flac), decoder_(decoder), header_(header), reader_(std::move(file)) {}
  ~FlacSession() { flac_.finish(decoder_); }
  FlacSession(const FlacSession&) = delete;
  FlacSession& operator=(const FlacSession&) = delete;

  Result<void> open() {
    flac_.ignore_metadata(decoder_);
    const auto status = flac_.init(decoder_, on_read, on_seek, on_tell, on_length, on_end, on_frame,
                                   nullptr, on_error, this);
    if (status != FLAC__STREAM_DECODER_INIT_STATUS_OK) return too_large_audio(kFlacName);
    if (!flac_.process_metadata(decoder_)) return failure();
    return {};
  }

  // The number of frames if the header does not state it: what follows the last block must then be
  // known not to be audio.
  Result<int64_t> count() {
    uint64_t end = 0;  // where the last block ends
    while (!ended()) {
      if (Result<void> done = next_block(); !done) {
        const Result<bool> only_tags = reader_.holds_only_tags(end);
        if (only_tags && *only_tags) break;
        return std::move(done.error());
      }
      flac_.position(decoder_, &end);
    }
    return decoded_;
  }

  Result<void> decode(const AudioJob& job) {
    job_ = &job;
    if (job.begin > 0 && !flac_.seek(decoder_, static_cast<FLAC__uint64>(job.begin))) {
      return broken_ && !reader_.error() ? std::move(*broken_) : failure();
    }
    if (broken_) return std::move(*broken_);
    while (decoded_ < job.count && !ended()) {
      if (Result<void> done = next_block(); !done) return done;
    }
    if (decoded_ < job.count) {
      return truncated_audio(kFlacName, job.begin + decoded_, header_.audio.frames);
    }
    // After a request for the very last frame, no other frame may follow; tags and other bytes may.
    const bool to_end = job.begin + job.count == header_.audio.frames;
    if (to_end && decoded_ > job.count) return more_than_promised();
    if (to_end && header_.audio.frames > 0 && !ended()) {
      is_behind_all_ = true;
      flac_.process_single(decoder_);
      if (reader_.error()) return failure();
      if (broken_) return std::move(*broken_);
    }
    return {};
  }

 private:
  using Read = FLAC__StreamDecoderReadStatus;
  static FlacSession& self(void* client) { return *static_cast<FlacSession*>(client); }

  static Read on_read(const FLAC__StreamDecoder*, FLAC__byte buffer[], size_t* bytes,
                      void* client) {
    RangeReader& reader = self(client).reader_;
    *bytes = reader.read(buffer, *bytes);
    if (reader.error()) return FLAC__STREAM_DECODER_READ_STATUS_ABORT;
    return *bytes == 0 ? FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM
                       : FLAC__STREAM_DECODER_READ_STATUS_CONTINUE;
  }
  static FLAC__StreamDecoderSeekStatus on_seek(const FLAC__StreamDecoder*, FLAC__uint64 offset,
                                               void* client) {
    const bool there = self(client).reader_.seek(static_cast<int64_t>(offset), SEEK_SET);
    return there ? FLAC__STREAM_DECODER_SEEK_STATUS_OK : FLAC__STREAM_DECODER_SEEK_STATUS_ERROR;
  }
  static FLAC__StreamDecoderTellStatus on_tell(const FLAC__StreamDecoder*, FLAC__uint64* offset,
                                               void* client) {
    *offset = self(client).reader_.at();
    return FLAC__STREAM_DECODER_TELL_STATUS_OK;
  }
  static FLAC__StreamDecoderLengthStatus on_length(const FLAC__StreamDecoder*, FLAC__uint64* bytes,
                                                   void* client) {
    *bytes = self(client).reader_.size();
    return FLAC__STREAM_DECODER_LENGTH_STATUS_OK;
  }
  static FLAC__bool on_end(const FLAC__StreamDecoder*, void* client) {
    const FlacSession& session = self(client);
    return session.reader_.at() == session.reader_.size();
  }
  static void on_error(const FLAC__StreamDecoder*, FLAC__StreamDecoderErrorStatus error,
                       void* client) {
    self(client).damaged_ = true;
    self(client).failed_checksum_ = error == FLAC__STREAM_DECODER_ERROR_STATUS_FRAME_CRC_MISMATCH;
  }
  static FLAC__StreamDecoderWriteStatus on_frame(const FLAC__StreamDecoder*,
                                                 const FLAC__Frame* frame,
                                                 const FLAC__int32* const samples[], void* client) {
    return self(client).take(*frame, samples) ? FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE
                                              : FLAC__STREAM_DECODER_WRITE_STATUS_ABORT;
  }

  bool take(const FLAC__Frame& frame, const FLAC__int32* const samples[]) {
    const auto& form = frame.header;
    const AudioHeader& audio = header_.audio;
    if (is_behind_all_) {
      if (!failed_checksum_) broken_ = more_than_promised();
      return false;
    }
    if (static_cast<int>(form.channels) != audio.channels ||
        static_cast<int>(form.bits_per_sample) != header_.bits ||
        static_cast<int>(form.sample_rate) != audio.sample_rate) {
      broken_ = corrupt_audio(kFlacName, "the format of a block differs from the header's");
      return false;
    }
    const int64_t expected = (job_ ? job_->begin : 0) + decoded_;
    if (static_cast<int64_t>(form.number.sample_number) != expected) {
      broken_ = corrupt_audio(kFlacName, "a block is numbered as frame " +
                                             std::to_string(form.number.sample_number) +
                                             ", but it is frame " + std::to_string(expected));
      return false;
    }
    if (damaged_) return false;
    const auto frames = static_cast<int64_t>(form.blocksize);
    if (job_) {
      // A seek delivers the rest of the block that contains the position; blocks count from 0.
      const int64_t wanted = std::clamp<int64_t>(job_->count - decoded_, 0, frames);
      for (int c = 0; c < audio.channels; ++c) {
        samples_from_integers(samples[c], header_.bits, static_cast<size_t>(wanted),
                              job_->planes + c * job_->stride + decoded_);
      }
    }
    decoded_ += frames;
    return true;
  }

  bool ended() const { return flac_.state(decoder_) == FLAC__STREAM_DECODER_END_OF_STREAM; }

  Result<void> next_block() {
    const bool done = flac_.process_single(decoder_);
    if (reader_.error()) return failure();
    if (broken_) return std::move(*broken_);
    if (damaged_ || !done) return failure();
    return {};
  }

  Error more_than_promised() const {
    return corrupt_audio(kFlacName, "it has more than the " + std::to_string(header_.audio.frames) +
                                        " frames that its header declares");
  }

  Error failure() const {
    if (reader_.error()) return *reader_.error();
    const auto state = flac_.state(decoder_);
    if (state == FLAC__STREAM_DECODER_MEMORY_ALLOCATION_ERROR) return too_large_audio(kFlacName);
    if (reader_.at() == reader_.size() && job_) {
      return truncated_audio(kFlacName, "ends or is damaged after frame " +
                                            std::to_string(job_->begin + decoded_) + " of " +
                                            std::to_string(header_.audio.frames));
    }
    return corrupt_audio(kFlacName, "a block is damaged after frame " +
                                        std::to_string((job_ ? job_->begin : 0) + decoded_));
  }

  const FlacLibrary& flac_;
  FLAC__StreamDecoder* const decoder_;
  const FlacHeader& header_;
  RangeReader reader_;
  const AudioJob* job_ = nullptr;
  int64_t decoded_ = 0;  // frames of the window, and frames after it
  bool damaged_ = false, failed_checksum_ = false;
  bool is_behind_all_ = false;  // all frames stated in the header have been decoded
  std::optional<Error> broken_;
};

class FlacDecoder final : public AudioDecoder {
 public:
  ~FlacDecoder() override {
    if (decoder_) flac_library().free(decoder_);
  }

  Result<AudioHeader> read_header(const ByteRanges& file) override {
    uint64_t begin = 0;
    Result<FlacHeader> header = header_of(file, begin);
    if (!header) return std::move(header.error());
    if (Result<void> ready = prepare(); !ready) return std::move(ready.error());
    if (header->audio.frames == 0) {
      FlacSession session(flac_library(), decoder_, *header, RangeReader(file, begin));
      if (Result<void> opened = session.open(); !opened) return std::move(opened.error());
      const Result<int64_t> frames = session.count();
      if (!frames) return frames.error();
      header->audio.frames = *frames;
    }
    return header->audio;
  }

  Result<void> decode(const AudioJob& job) override {
    uint64_t begin = 0;
    Result<FlacHeader> header = header_of(job.file, begin);
    if (!header) return std::move(header.error());
    if (Result<void> ready = prepare(); !ready) return ready;
    FlacSession session(flac_library(), decoder_, *header, RangeReader(job.file, begin));
    if (Result<void> opened = session.open(); !opened) return opened;
    return session.decode(job);
  }

 private:
  // Also returns where the file begins, after tags.
  static Result<FlacHeader> header_of(const ByteRanges& file, uint64_t& begin) {
    const Result<uint64_t> behind = offset_after_id3(file);
    if (!behind) return behind.error();
    begin = *behind;
    const Result<std::span<const uint8_t>> first = file.at(begin, kFlacHeader);
    if (!first) return first.error();
    return read_flac_header(*first, file.size() - begin);
  }

  Result<void> prepare() {
    const FlacLibrary& flac = flac_library();
    if (!flac.library.is_open()) return flac.library.missing();
    if (!decoder_) decoder_ = flac.make();
    if (!decoder_) return too_large_audio(kFlacName);
    return {};
  }

  FLAC__StreamDecoder* decoder_ = nullptr;
};

const AudioCodecRecord kFlac{
    .name = "flac",
    .doc = "FLAC of 4 to 32 bits and up to 8 channels, via libFLAC.",
    .oracle = "libsndfile, bit for bit",
    .suffixes = {".flac"},
    .sniff = begins_like_flac,
    .make = []() -> std::unique_ptr<AudioDecoder> { return std::make_unique<FlacDecoder>(); },
    .library = []() -> const RunTimeLibrary& { return flac_library().library; }};
const Register<AudioCodecRecord> registered_flac(kFlac);

}  // namespace
}  // namespace headrace
