// SPDX-License-Identifier: Apache-2.0
#include "stream_decoder.h"

#include <algorithm>
#include <cstring>

extern "C" {
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
}

#include "frame_description.h"
#include "headrace/codecs/video/video_track.h"

namespace headrace::media {
namespace {

// Decoders by name, so that a stream cannot select another one.
const char* decoder_name(uint32_t codec) {
  switch (static_cast<VideoCodec>(codec)) {
    case VideoCodec::kH264:
      return "h264";
    case VideoCodec::kHEVC:
      return "hevc";
    case VideoCodec::kVP8:
      return "vp8";
    case VideoCodec::kVP9:
      return "vp9";
    case VideoCodec::kAV1:
      return "libdav1d";
    case VideoCodec::kMPEG4:
      return "mpeg4";
    case VideoCodec::kMJPEG:
      return "mjpeg";
    case VideoCodec::kGIF:
    case VideoCodec::kWebP:
      break;  // the engine has its own readers
  }
  return nullptr;
}

// A packet's number and flags travel through the decoder as its time.
int64_t time_of(const Packet& packet) {
  return static_cast<int64_t>(packet.number) << 4 | (packet.flags & 15);
}
uint32_t number_of(int64_t time) { return static_cast<uint32_t>(time >> 4); }

}  // namespace

StreamDecoder::StreamDecoder(FrameMemory& memory)
    : memory_(memory),
      frame_(av_frame_alloc()),
      copy_(av_frame_alloc()),
      packet_(av_packet_alloc()) {}

FailureReport StreamDecoder::open(const Request& request, std::span<const uint8_t> parameters) {
  context_.reset();
  given_.clear();
  if (!frame_ || !copy_ || !packet_ || !memory_.resize(request.frame_bytes)) {
    return {Failure::kMemory};
  }
  const char* const name = decoder_name(request.codec);
  if (!name) return {Failure::kRequest};
  const AVCodec* const codec = avcodec_find_decoder_by_name(name);
  if (!codec) return {Failure::kNoDecoder, kNoPacket, name};
  context_ = new_context(codec, parameters);
  if (!context_) return {Failure::kMemory};
  context_->max_pixels = request.max_pixels;
  // Frames after an open group's key frame would be marked damaged until proven otherwise; the
  // engine handles them itself.
  context_->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT;
  // Otherwise cropped columns on the left are kept, and rows would begin at odd addresses.
  context_->flags |= AV_CODEC_FLAG_UNALIGNED;
  context_->get_buffer2 = get_frame_buffer;
  context_->opaque = &memory_;
  if (request.x264_build >= 0) {
    av_opt_set_int(context_.get(), "x264_build", request.x264_build, AV_OPT_SEARCH_CHILDREN);
  }
  if (avcodec_open2(context_.get(), codec, nullptr) < 0) {
    context_.reset();
    return {Failure::kParameters, kNoPacket, name};
  }
  return {};
}

FailureReport StreamDecoder::decode(const Request& request, std::span<const Packet> packets,
                                    std::span<const uint8_t> bytes, FrameTaker& taker,
                                    uint32_t& fed) {
  fed = kNoPacket;
  if (!context_ || packets.empty()) return {Failure::kRequest};
  taker_ = &taker;
  enough_ = is_lost_ = false;
  first_ = packets.front().number;
  for (size_t i = 0; i < packets.size() && !is_lost_; ++i) {
    const Packet& packet = packets[i];
    if (packet.flags & kRestart) {
      if (FailureReport found = finish()) return found;
      if (enough_) return {};
      is_whole_ = is_suspect_ = false;
    }
    // Otherwise the decoder guesses it, and returns frames too early or not at all.
    context_->has_b_frames = std::max(context_->has_b_frames, request.reorder);
    if (packet.offset > bytes.size() || packet.size > bytes.size() - packet.offset) {
      return {Failure::kRequest};
    }
    const FailureReport found = feed(packet, bytes.subspan(packet.offset, packet.size));
    if (found && !(packet.flags & kAhead)) return found;
    if (found) is_lost_ = true;
    is_suspect_ |= library_reported_error() || is_lost_;
    if (!enough_) continue;
    // Frames held back may be damaged, and other frames may reference them.
    if (is_suspect_) return finish();
    fed = static_cast<uint32_t>(i) + 1;
    return {};
  }
  if (request.last || is_lost_) return finish();
  fed = static_cast<uint32_t>(packets.size());
  return {};
}

FailureReport StreamDecoder::feed(const Packet& packet, std::span<const uint8_t> bytes) {
  if (av_new_packet(packet_.get(), static_cast<int>(bytes.size())) < 0) {
    return {Failure::kMemory, packet.number};
  }
  std::ranges::copy(bytes, packet_->data);
  packet_->pts = time_of(packet);
  if (packet.flags & kRestart) {
    packet_->flags |= AV_PKT_FLAG_KEY;
    // Otherwise memory management commands that refer to missing pictures would be errors; slices
    // that use such a picture still count as damaged.
    const bool is_open = packet.flags & kOpenStart;
    context_->err_recognition = is_open ? 0 : AV_EF_EXPLODE;
  }
  fed_ = packet;
  int error = avcodec_send_packet(context_.get(), packet_.get());
  if (error == AVERROR(EAGAIN)) {
    if (FailureReport found = receive()) return found;
    error = avcodec_send_packet(context_.get(), packet_.get());
  }
  av_packet_unref(packet_.get());
  return error < 0 ? report(error) : receive();
}

FailureReport StreamDecoder::receive() {
  while (!enough_ || is_suspect_) {
    const int error = avcodec_receive_frame(context_.get(), frame_.get());
    if (error == AVERROR(EAGAIN) || error == AVERROR_EOF) return {};
    if (error < 0) return report(error);
    const FailureReport found = give();
    av_frame_unref(frame_.get());
    if (found) return found;
  }
  return {};
}

// An error of the packet that was fed last.
FailureReport StreamDecoder::report(int error) const {
  if (error == AVERROR(ENOMEM)) return {Failure::kMemory, fed_.number};
  if (fed_.flags & kLeading) return {};  // its reference frames were never fed
  return {error == AVERROR_PATCHWELCOME ? Failure::kFormat : Failure::kDamage, fed_.number};
}

FailureReport StreamDecoder::finish() {
  avcodec_send_packet(context_.get(), nullptr);
  const FailureReport found = receive();
  avcodec_flush_buffers(context_.get());
  return found;
}

bool StreamDecoder::is_damaged() {
  if (frame_->decode_error_flags) return true;
  const bool is_corrupt = frame_->flags & AV_FRAME_FLAG_CORRUPT;
  if ((frame_->pts & kRestart) && !is_corrupt) is_whole_ = true;
  // With H.264 this flag only means that no first frame has been output yet. For frames held back
  // at the end it is also set after one was, unless that was an IDR picture.
  const bool has_begun = is_whole_ && context_->codec_id == AV_CODEC_ID_H264;
  return is_corrupt && !has_begun;
}

FailureReport StreamDecoder::give() {
  const int64_t time = frame_->pts;
  if (time < 0) return {};
  const uint32_t number = number_of(time);
  if (is_damaged()) {
    const bool is_ahead = (time & kAhead) && number >= first_;
    if (is_ahead) is_lost_ = true;
    if ((time & kKept) || !((time & kLeading) || is_ahead)) return {Failure::kDamage, number};
  }
  if (enough_ || !(time & kKept)) return {};
  // On a damaged stream a decoder may output a frame twice.
  if (!given_.insert(number).second) return {Failure::kDamage, number};
  Frame frame{.number = number};
  if (!describe(*frame_, context_->codec_id, frame)) {
    const char* const name = av_get_pix_fmt_name(static_cast<AVPixelFormat>(frame_->format));
    return {Failure::kFormat, number, name ? name : ""};
  }
  const AVFrame* shown = frame_.get();
  if (!memory_.offset(shown->data[0])) {  // from decoders that use their own memory
    copy_->format = frame_->format;
    copy_->width = frame_->width;
    copy_->height = frame_->height;
    if (memory_.give_planes(context_.get(), copy_.get()) < 0 ||
        av_frame_copy(copy_.get(), frame_.get()) < 0) {
      av_frame_unref(copy_.get());
      return {Failure::kMemory, number};
    }
    shown = copy_.get();
  }
  for (int plane = 0; plane < frame.planes; ++plane) {
    frame.offset[plane] = memory_.offset(shown->data[plane]).value_or(0);
    frame.stride[plane] = shown->linesize[plane];
  }
  enough_ = !taker_->take(frame);
  av_frame_unref(copy_.get());
  return {};
}

AudioStreamDecoder::AudioStreamDecoder(FrameMemory& memory)
    : memory_(memory), frame_(av_frame_alloc()), packet_(av_packet_alloc()) {}

FailureReport AudioStreamDecoder::open(const Request& request,
                                       std::span<const uint8_t> parameters) {
  constexpr const char* kName = "aac";
  context_.reset();
  if (!frame_ || !packet_ || !memory_.resize(request.frame_bytes)) return {Failure::kMemory};
  const AVCodec* const codec = avcodec_find_decoder_by_name(kName);
  if (!codec) return {Failure::kNoDecoder, kNoPacket, kName};
  context_ = new_context(codec, parameters);
  if (!context_) return {Failure::kMemory};
  // Ignores the encoder delay that a packet states: the container's value counts.
  context_->flags2 |= AV_CODEC_FLAG2_SKIP_MANUAL;
  if (avcodec_open2(context_.get(), codec, nullptr) < 0) {
    context_.reset();
    return {Failure::kParameters, kNoPacket, kName};
  }
  return {};
}

FailureReport AudioStreamDecoder::decode(std::span<const Packet> packets,
                                         std::span<const uint8_t> bytes, Samples& samples) {
  if (!context_) return {Failure::kRequest};
  for (const Packet& packet : packets) {
    if (packet.offset > bytes.size() || packet.size > bytes.size() - packet.offset) {
      return {Failure::kRequest};
    }
    if (av_new_packet(packet_.get(), static_cast<int>(packet.size)) < 0) return {Failure::kMemory};
    std::ranges::copy(bytes.subspan(packet.offset, packet.size), packet_->data);
    const int error = avcodec_send_packet(context_.get(), packet_.get());
    av_packet_unref(packet_.get());
    if (error < 0) return {Failure::kDamage, packet.number};
    if (FailureReport found = take(packet, samples)) return found;
  }
  return {};
}

// Receives the single frame of a packet. All frames of a track must have the same length, channels
// and sample rate.
FailureReport AudioStreamDecoder::take(const Packet& packet, Samples& samples) {
  if (avcodec_receive_frame(context_.get(), frame_.get()) < 0) {
    return {Failure::kDamage, packet.number};
  }
  const Samples found{samples.packets, static_cast<uint32_t>(frame_->nb_samples),
                      static_cast<uint32_t>(frame_->ch_layout.nb_channels),
                      static_cast<uint32_t>(frame_->sample_rate)};
  const bool is_first = samples.packets == 0;
  const bool is_alike =
      is_first || (found.frames == samples.frames && found.channels == samples.channels &&
                   found.rate == samples.rate);
  const size_t plane = size_t{found.frames} * sizeof(float), size = plane * found.channels;
  const size_t at = samples.packets * size;
  const std::span<uint8_t> memory = memory_.bytes();
  FailureReport report;
  if (frame_->format != AV_SAMPLE_FMT_FLTP || !is_alike) {
    report = {Failure::kFormat, packet.number};
  } else if (at > memory.size() || size > memory.size() - at) {
    report = {Failure::kMemory, packet.number};
  } else {
    for (uint32_t channel = 0; channel < found.channels; ++channel) {
      std::memcpy(memory.data() + at + channel * plane, frame_->extended_data[channel], plane);
    }
    samples = found;
    ++samples.packets;
  }
  av_frame_unref(frame_.get());
  return report;
}

}  // namespace headrace::media
