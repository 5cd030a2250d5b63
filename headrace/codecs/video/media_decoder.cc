// SPDX-License-Identifier: Apache-2.0
// Decodes frames with headrace-av: the packets of a plan are sent in portions that fit into its
// memory, and each frame is delivered before the next is requested. A clip after the last one in
// the same video continues from there.
#include "headrace/codecs/video/media_decoder.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "headrace/codecs/media/media_errors.h"
#include "headrace/codecs/media/media_process.h"
#include "headrace/codecs/video/fed_packets.h"
#include "headrace/codecs/video/nal.h"
#include "headrace/codecs/video/video_decoder.h"

namespace headrace {
namespace {

constexpr size_t kPacketMemory = size_t{1} << 20;
// Frames that a decoder may hold: the 16 that H.264 allows, those waiting to be shown, and some
// more.
constexpr int64_t kMaxFrames = 24;
// Memory of a decoder and its library, not counting frames.
constexpr size_t kDecoderBytes = size_t{256} << 20;
// Maximum needed for frame reordering (H.264 A.3.1, MaxDpbFrames).
constexpr size_t kMaxReordered = 16;

// A frame's size including the codecs' padding.
int64_t widest(int size) { return (int64_t{size} + 127) / 128 * 128 + 128; }

// Valid until the next call; empty if they cannot be read: writing them reports the error.
std::span<const uint8_t> bytes_of(const VideoTrack& track, const ByteRanges& file, uint32_t packet,
                                  uint32_t most = UINT32_MAX) {
  const MediaPacket& where = track.packets[packet];
  const Result<std::span<const uint8_t>> bytes =
      file.at(static_cast<uint64_t>(where.offset), std::min(where.size, most));
  return bytes ? *bytes : std::span<const uint8_t>();
}

// The x264 build that made a stream. Early builds had a bug in 4:4:4 that decoders compensate for
// if they know the build, which is only in the first packet.
int x264_build(const VideoTrack& track, const ByteRanges& file) {
  if (track.codec != VideoCodec::kH264) return -1;
  constexpr std::string_view kIntroduction = "x264 - core ";
  const std::span<const uint8_t> first = bytes_of(track, file, 0, kFirstBytes);
  const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  const size_t at = text.find(kIntroduction);
  if (at == text.npos) return -1;
  int build = 0;
  for (const char c : text.substr(at + kIntroduction.size(), 5)) {
    if (c < '0' || c > '9') break;
    build = build * 10 + (c - '0');
  }
  return build;
}

// How many frames must be held back because later packets are shown before them, if `packets`
// follow those already fed.
int reorder_of(const VideoTrack& track, const FedPackets& fed,
               std::span<const media::Packet> packets) {
  std::vector<int64_t> times;  // since the last restart
  for (size_t i = fed.size() - std::min(fed.size(), kMaxReordered); i < fed.size(); ++i) {
    times.push_back(track.packets[fed[i]].pts);
  }
  int most = 0;
  for (const media::Packet& packet : packets) {
    const int64_t pts = track.packets[packet.number].pts;
    if (packet.flags & media::kRestart) times.clear();
    const auto near = std::span(times).last(std::min(times.size(), kMaxReordered));
    const auto later = std::ranges::count_if(near, [&](int64_t time) { return time > pts; });
    most = std::max(most, static_cast<int>(later));
    times.push_back(pts);
  }
  return most;
}

bool packet_is_inside(const MediaPacket& packet, const ByteRanges& file) {
  return packet.offset >= 0 && static_cast<uint64_t>(packet.offset) <= file.size() &&
         packet.size <= file.size() - static_cast<uint64_t>(packet.offset);
}

}  // namespace

size_t video_working_bytes(const VideoTrack& track) {
  constexpr size_t kDecoder = size_t{6} << 20;
  const auto pixels = static_cast<size_t>(std::max(track.width, 1)) *
                      static_cast<size_t>(std::max(track.height, 1));
  return kDecoder + 8 * (pixels + pixels / 2);
}

namespace {

class MediaDecoder final : public VideoDecoder {
 public:
  MediaDecoder(const VideoDecoderOptions& options, std::string program)
      : options_(options), program_(std::move(program)) {}

  Result<void> start() {
    Patience patience = new_patience();
    return ensure_process(patience);
  }

  Result<void> decode(const VideoTrack& track, const ByteRanges& file, const FramePlan& plan,
                      FrameSink& sink) override {
    if (plan.kept.empty()) return {};
    if (Result<void> good = check(track, file, plan); !good) return good;
    Patience patience = new_patience();
    EachFrameOnce once(sink, plan.kept.size());
    if (fed_.is_of(track)) {
      Result<void> done = run(track, file, plan, once, true, patience);
      if (done || once.failed()) return done;
      // Errors in a file do not depend on what was decoded before.
    }
    return run(track, file, plan, once, false, patience);
  }

  void set_stop_flag(const std::atomic<bool>* stop) override { options_.stop = stop; }

 private:
  // A sink that ignores frames it already has.
  class EachFrameOnce final : public FrameSink {
   public:
    EachFrameOnce(FrameSink& sink, size_t frames) : sink_(sink), came_(frames, false) {}
    Result<void> frame(size_t number, const YuvFrame& frame) override {
      if (came_[number]) return {};
      came_[number] = true;
      Result<void> taken = sink_.frame(number, frame);
      failed_ = !taken;
      return taken;
    }
    bool failed() const { return failed_; }

   private:
    FrameSink& sink_;
    std::vector<bool> came_;
    bool failed_ = false;
  };

  // The plan's frames that are still missing.
  class Wanted {
   public:
    explicit Wanted(const FramePlan& plan)
        : came_(plan.kept.size(), false), missing_(plan.kept.size()) {
      for (size_t k = 0; k < plan.kept.size(); ++k) number_.emplace(plan.kept[k], k);
    }
    // Once per frame: a packet may be fed again because others depend on it.
    bool ask_for(uint32_t packet) { return number_.contains(packet) && asked_.insert_once(packet); }
    // The packet's index in plan.kept, the first time that its frame is output.
    std::optional<size_t> take(uint32_t packet) {
      const auto found = number_.find(packet);
      if (found == number_.end() || came_[found->second]) return std::nullopt;
      came_[found->second] = true;
      --missing_;
      return found->second;
    }
    bool any() const { return missing_ > 0; }
    std::optional<size_t> first_missing() const {
      const auto missing = std::ranges::find(came_, false);
      if (missing == came_.end()) return std::nullopt;
      return static_cast<size_t>(missing - came_.begin());
    }

   private:
    struct Set {
      std::unordered_map<uint32_t, bool> seen;
      bool insert_once(uint32_t number) { return seen.emplace(number, true).second; }
    };
    std::unordered_map<uint32_t, size_t> number_;
    std::vector<bool> came_;
    size_t missing_;
    Set asked_;
  };

  // All frames of the plan. `goes_on`: continue from the decoder's current position if possible,
  // and keep it able to continue.
  Result<void> run(const VideoTrack& track, const ByteRanges& file, const FramePlan& plan,
                   FrameSink& sink, bool goes_on, Patience& patience) {
    if (Result<void> good = ensure_process(patience); !good) return good;
    FedPackets fed = std::exchange(fed_, {});  // after an error the state is unknown
    const size_t known = goes_on ? fed.known_of(track, file, plan) : 0;
    if (known > 0) {
      fed.forget_before(plan.feeds.front().packet);
    } else {
      if (Result<void> good = open(track, file, patience); !good) return good;
      fed.begin(track);
    }
    Wanted wanted(plan);
    const std::vector<media::Packet> packets =
        packets_of(track, file, plan, known, goes_on, wanted);
    const int reorder = track.codec == VideoCodec::kH264 ? reorder_of(track, fed, packets) : 0;
    for (size_t next = 0; next < packets.size() && wanted.any();) {
      media::Request request{.kind = media::RequestKind::kDecode, .reorder = reorder};
      const Result<size_t> end = write_packets(track, file, packets, next, request);
      if (!end) return end.error();
      request.last = *end == packets.size();
      const Result<uint32_t> taken = exchange(request, track, wanted, sink, patience);
      if (!taken) return taken.error();
      for (size_t i = next; *taken != media::kNoPacket && i < next + *taken; ++i) {
        const uint32_t number = packets[i].number;
        fed.add(number, packets[i].flags & media::kRestart, bytes_of(track, file, number));
      }
      if (*taken == media::kNoPacket) fed.end();
      next = *end;
    }
    if (const std::optional<size_t> missing = wanted.first_missing()) {
      const uint32_t packet = plan.kept[*missing];
      return missing_frame(track, packet, bytes_of(track, file, packet));
    }
    fed_ = std::move(fed);
    return {};
  }

  Patience new_patience() const { return {.seconds = options_.seconds, .stop = options_.stop}; }

  Result<void> check(const VideoTrack& track, const ByteRanges& file, const FramePlan& plan) const {
    if (track.codec > VideoCodec::kMJPEG) {
      return undecodable_video("its codec is not supported by headrace-av", "convert it");
    }
    const int64_t pixels = int64_t{track.width} * track.height;
    if (track.width < 1 || track.height < 1 || track.width > 1 << 15 || track.height > 1 << 15 ||
        pixels > options_.max_pixels) {
      return undecodable_video("its frames are " + std::to_string(track.width) + " x " +
                                   std::to_string(track.height) + ", but the limit is " +
                                   std::to_string(options_.max_pixels) + " pixels",
                               "convert it to smaller frames, or skip such records (on_error=)");
    }
    for (const Feed& feed : plan.feeds) {
      if (feed.packet >= track.packets.size())
        return damaged_video(track, feed.packet, "no packet");
      if (!packet_is_inside(track.packets[feed.packet], file)) {
        return damaged_video(track, feed.packet, "a packet lies outside of the file");
      }
    }
    return {};
  }

  Result<void> ensure_process(Patience& patience) {
    if (process_ && process_->is_running()) return {};
    fed_ = {};
    Result<std::unique_ptr<MediaProcess>> started =
        MediaProcess::start(program_, options_.isolate, patience);
    if (!started) return std::move(started.error());
    process_ = std::move(*started);
    return {};
  }

  // A decoder that continues has the same state as a freshly opened one. Otherwise it is not
  // reused: flushing keeps what it learned from a stream's headers, which could change the frames
  // of the next one.
  Result<void> open(const VideoTrack& track, const ByteRanges& file, Patience& patience) {
    const int64_t pixels = widest(track.width) * widest(track.height);
    // Six bytes: three planes of twelve bits.
    const auto frame_bytes = static_cast<size_t>(kMaxFrames * (6 * pixels + 4096));
    if (pixels != std::exchange(last_pixels_, pixels)) process_->drop_frames();
    process_->drop_large_packets();
    if (Result<void> good = process_->reserve(std::max(kPacketMemory, track.parameters.size()),
                                              frame_bytes, kDecoderBytes);
        !good) {
      return good;
    }
    std::ranges::copy(track.parameters, process_->packets().begin());
    Result<media::Reply> reply =
        process_->ask({.kind = media::RequestKind::kOpen,
                       .codec = static_cast<uint32_t>(track.codec),
                       .parameter_bytes = static_cast<uint32_t>(track.parameters.size()),
                       .x264_build = x264_build(track, file),
                       .max_pixels = pixels},
                      patience);
    if (!reply) return std::move(reply.error());
    if (reply->kind != media::ReplyKind::kOpened) return refused(*reply, track);
    return {};
  }

  // The packets to send, without their positions in memory: the plan's feeds except those the
  // decoder has received, plus those that keep it able to continue.
  std::vector<media::Packet> packets_of(const VideoTrack& track, const ByteRanges& file,
                                        const FramePlan& plan, size_t known, bool look_ahead,
                                        Wanted& wanted) {
    const std::optional<NalFraming> framing = track.codec == VideoCodec::kH264
                                                  ? nal_framing(track.codec, track.parameters)
                                                  : std::optional<NalFraming>();
    std::vector<media::Packet> out;
    const auto add = [&](uint32_t number, uint32_t flags) {
      const MediaPacket& packet = track.packets[number];
      if (packet.pts < restarted_at_) flags |= media::kLeading;
      out.push_back({.size = packet.size, .number = number, .flags = flags});
    };
    for (size_t i = known; i < plan.feeds.size(); ++i) {
      const uint32_t number = plan.feeds[i].packet;
      uint32_t flags = 0;
      if (plan.feeds[i].restart || i == 0) {
        flags = media::kRestart;
        restarted_at_ = track.packets[number].pts;
        if (framing && !is_idr(*framing, bytes_of(track, file, number))) flags |= media::kOpenStart;
      }
      if (wanted.ask_for(number)) flags |= media::kKept;
      add(number, flags);
    }
    if (look_ahead) {
      for (const uint32_t number : plan.ahead) {
        if (!packet_is_inside(track.packets[number], file)) break;
        add(number, media::kAhead);
      }
    }
    return out;
  }

  // Writes packets starting at `next`, as many as fit, and returns where they end.
  Result<size_t> write_packets(const VideoTrack& track, const ByteRanges& file,
                               std::span<const media::Packet> packets, size_t next,
                               media::Request& request) {
    const size_t begin = next;
    size_t bytes = 0;
    for (; next < packets.size(); ++next) {
      const size_t more = sizeof(media::Packet) + packets[next].size;
      if (next > begin && bytes + more > kPacketMemory) break;
      bytes += more;
    }
    if (Result<void> good = process_->reserve(bytes, 0, kDecoderBytes); !good) {
      return std::move(good.error());
    }
    const std::span<uint8_t> memory = process_->packets();
    size_t at = (next - begin) * sizeof(media::Packet);
    for (size_t i = begin; i < next; ++i) {
      media::Packet entry = packets[i];
      entry.offset = at;
      std::memcpy(memory.data() + (i - begin) * sizeof entry, &entry, sizeof entry);
      const auto offset = static_cast<uint64_t>(track.packets[entry.number].offset);
      if (Result<void> read = file.read(offset, memory.subspan(at, entry.size)); !read) {
        return std::move(read.error());
      }
      at += entry.size;
    }
    request.packets = static_cast<uint32_t>(next - begin);
    return next;
  }

  // Sends a request and receives all frames for it. Returns the number of packets fed (see
  // Reply::number).
  Result<uint32_t> exchange(const media::Request& request, const VideoTrack& track, Wanted& wanted,
                            FrameSink& sink, Patience& patience) {
    Result<media::Reply> reply = process_->ask(request, patience);
    while (reply && reply->kind == media::ReplyKind::kFrame) {
      const std::optional<size_t> number = wanted.take(reply->frame.number);
      if (!number) return refused({}, track);
      Result<YuvFrame> frame = yuv_frame_of(reply->frame, process_->frames(), track);
      if (!frame) {
        process_->end();
        return std::move(frame.error());
      }
      if (Result<void> taken = give(sink, *number, *frame); !taken) {
        (void)process_->ask({.kind = media::RequestKind::kStop}, patience);
        return std::move(taken.error());
      }
      reply = process_->ask(
          {.kind = wanted.any() ? media::RequestKind::kContinue : media::RequestKind::kStop},
          patience);
    }
    if (!reply) return std::move(reply.error());
    const bool is_sane = reply->kind == media::ReplyKind::kDecoded &&
                         (reply->number <= request.packets || reply->number == media::kNoPacket);
    if (!is_sane) return refused(*reply, track);
    return reply->number;
  }

  // An exception in the sink, such as a failed allocation, would leave an unread answer, which the
  // next video would receive.
  Result<void> give(FrameSink& sink, size_t number, const YuvFrame& frame) {
    try {
      return sink.frame(number, frame);
    } catch (...) {
      process_->end();
      throw;
    }
  }

  // A process that has sent an invalid reply is not used again.
  Error refused(const media::Reply& reply, const VideoTrack& track) {
    const bool is_sane = reply.kind == media::ReplyKind::kFailed &&
                         reply.failure != media::Failure::kNone &&
                         reply.failure < media::Failure::kRequest;
    if (!is_sane) process_->end();
    return failure_of(is_sane ? reply : media::Reply{}, track);
  }

  VideoDecoderOptions options_;
  const std::string program_;
  std::unique_ptr<MediaProcess> process_;
  int64_t last_pixels_ = 0;
  int64_t restarted_at_ = 0;
  FedPackets fed_;  // for the currently open decoder
};

}  // namespace

Result<std::unique_ptr<VideoDecoder>> make_media_decoder(const VideoDecoderOptions& options,
                                                         const std::string& program) {
  auto decoder = std::make_unique<MediaDecoder>(options, program);
  if (Result<void> started = decoder->start(); !started) return std::move(started.error());
  return std::unique_ptr<VideoDecoder>(std::move(decoder));
}

Result<std::unique_ptr<VideoDecoder>> make_video_decoder(const VideoDecoderOptions& options) {
  return make_media_decoder(options, media_program());
}

}  // namespace headrace
