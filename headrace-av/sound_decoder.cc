// SPDX-License-Identifier: Apache-2.0
#include "sound_decoder.h"

#include <algorithm>
#include <cstring>

namespace headrace::media {

SoundDecoder::SoundDecoder(FrameMemory& memory)
    : memory_(memory), frame_(av_frame_alloc()), packet_(av_packet_alloc()) {}

Trouble SoundDecoder::open(const Request& request, std::span<const uint8_t> parameters) {
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

Trouble SoundDecoder::decode(std::span<const Packet> packets, std::span<const uint8_t> bytes,
                             Samples& samples) {
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
    if (Trouble found = take(packet, samples)) return found;
  }
  return {};
}

// Receives the single frame of a packet. All frames of a track must have the same length, channels
// and sample rate.
Trouble SoundDecoder::take(const Packet& packet, Samples& samples) {
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
  Trouble trouble;
  if (frame_->format != AV_SAMPLE_FMT_FLTP || !is_alike) {
    trouble = {Failure::kFormat, packet.number};
  } else if (at > memory.size() || size > memory.size() - at) {
    trouble = {Failure::kMemory, packet.number};
  } else {
    for (uint32_t channel = 0; channel < found.channels; ++channel) {
      std::memcpy(memory.data() + at + channel * plane, frame_->extended_data[channel], plane);
    }
    samples = found;
    ++samples.packets;
  }
  av_frame_unref(frame_.get());
  return trouble;
}

}  // namespace headrace::media
