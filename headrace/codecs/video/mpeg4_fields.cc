// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/mpeg4_fields.h"

#include <algorithm>
#include <span>

#include "headrace/codecs/video/mpeg4_pictures.h"

namespace headrace {
namespace {

// A picture's header, and what may come before it: the layer, encoder names, a group.
constexpr uint32_t kHead = 1024;

std::span<const uint8_t> head_of(const VideoTrack& track, const ByteRanges& file, uint32_t packet) {
  const MediaPacket& where = track.packets[packet];
  const Result<std::span<const uint8_t>> bytes =
      file.at(static_cast<uint64_t>(where.offset), std::min(where.size, kHead));
  return bytes ? *bytes : std::span<const uint8_t>();
}

Mpeg4Layer first_layer(const VideoTrack& track, const ByteRanges& file) {
  Mpeg4Layer layer;
  layer.learn(track.parameters);
  if (layer.time_bits == 0) layer.learn(head_of(track, file, 0));
  return layer;
}

// Whether any picture is decoded after one that is shown later.
bool has_reordering(const VideoTrack& track) {
  const auto is_earlier = [](const MediaPacket& a, const MediaPacket& b) { return a.pts < b.pts; };
  return !std::ranges::is_sorted(track.packets, is_earlier);
}

}  // namespace

Mpeg4Fields::Mpeg4Fields(const VideoTrack& track, const ByteRanges& file)
    : track_(track), file_(file) {
  matter_ = track.codec == VideoCodec::kMPEG4 && !track.packets.empty() && has_reordering(track) &&
            first_layer(track, file).interlaced;
}

bool Mpeg4Fields::describes_layer(uint32_t packet) const {
  if (!track_.packets[packet].key) return false;
  Mpeg4Layer layer;
  layer.learn(head_of(track_, file_, packet));
  return layer.time_bits > 0;
}

bool Mpeg4Fields::is_between(uint32_t packet) const {
  const std::optional<Mpeg4Picture> picture = next_mpeg4_picture(head_of(track_, file_, packet));
  return picture && picture->kind == Mpeg4Kind::kBetween;
}

uint32_t Mpeg4Fields::layer_of(uint32_t packet) {
  const bool goes_on = packet >= asked_;
  const uint32_t known = goes_on ? asked_ : 0;
  uint32_t layer = packet;
  while (layer > known && !describes_layer(layer)) --layer;
  its_layer_ = goes_on && layer == known ? its_layer_ : layer;
  asked_ = packet;
  return its_layer_;
}

std::optional<uint32_t> Mpeg4Fields::first_between(uint32_t layer) const {
  const auto count = static_cast<uint32_t>(track_.packets.size());
  for (uint32_t i = layer + 1; i < count && !describes_layer(i); ++i) {
    if (is_between(i)) return i;
  }
  return {};
}

std::optional<uint32_t> Mpeg4Fields::measuring(uint32_t packet) {
  const uint32_t layer = layer_of(packet);
  if (measured_layer_ != layer) measuring_ = first_between(layer);
  measured_layer_ = layer;
  return measuring_;
}

uint32_t Mpeg4Fields::start_of_measuring(uint32_t measuring) {
  uint32_t start = layer_of(measuring);
  if (track_.packets[measuring].pts > track_.packets[start].pts) return start;
  // It is shown between the layer's first picture and one before that.
  while (start > 0 && !track_.packets[--start].key) {
  }
  return start;
}

}  // namespace headrace
