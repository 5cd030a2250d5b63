// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/mp4_sample_entry.h"

#include <string>

#include "headrace/codecs/media/media_errors.h"
#include "headrace/codecs/media/mp4_boxes.h"
#include "headrace/codecs/media/mp4_esds.h"
#include "headrace/codecs/video/video_track.h"

namespace headrace {
namespace {

struct CodedAs {
  uint32_t name;
  VideoCodec codec;
  uint32_t parameters;  // the box that contains them; 0 if there is none
};
constexpr CodedAs kCodings[] = {
    {box_named("avc1"), VideoCodec::kH264, box_named("avcC")},
    {box_named("avc3"), VideoCodec::kH264, box_named("avcC")},
    {box_named("hvc1"), VideoCodec::kHEVC, box_named("hvcC")},
    {box_named("hev1"), VideoCodec::kHEVC, box_named("hvcC")},
    {box_named("vp08"), VideoCodec::kVP8, 0},
    {box_named("vp09"), VideoCodec::kVP9, 0},
    {box_named("av01"), VideoCodec::kAV1, box_named("av1C")},
    {box_named("mp4v"), VideoCodec::kMPEG4, box_named("esds")},
    {box_named("jpeg"), VideoCodec::kMJPEG, 0},
    {box_named("mjpg"), VideoCodec::kMJPEG, 0},
};

// In readable form: "s263", or its number if it is not text.
std::string name_of(uint32_t type) {
  std::string name;
  for (int shift = 24; shift >= 0; shift -= 8) {
    const char c = static_cast<char>(type >> shift);
    if (c < ' ' || c > '~') return "no. " + std::to_string(type);
    name += c;
  }
  return "\"" + name + "\"";
}

VideoColor read_color(std::span<const uint8_t> colr) {
  BigEndianReader reader(colr);
  const uint32_t kind = reader.u32();
  const bool nclx = kind == box_named("nclx");
  if (!nclx && kind != box_named("nclc"))
    return {};     // a profile: ignored for data that is not RGB
                   // yet
  reader.skip(2);  // primaries
  VideoColor color;
  const uint16_t transfer = reader.u16(), matrix = reader.u16();
  const bool full = nclx && reader.u8() >> 7;
  if (!reader.good()) return {};
  color.transfer = color_transfer_from(transfer);
  color.matrix = color_matrix_from(matrix);
  if (nclx) color.range = full ? ColorRange::kFull : ColorRange::kLimited;
  return color;
}

// VP9's own box also states the colors ("VP Codec ISO Media File Format Binding").
VideoColor read_vp_color(std::span<const uint8_t> vpcc) {
  BigEndianReader reader(vpcc);
  reader.skip(6);  // version, flags, profile, level
  const bool full = reader.u8() & 1;
  reader.skip(1);  // primaries
  const uint8_t transfer = reader.u8(), matrix = reader.u8();
  if (!reader.good()) return {};
  return {.matrix = color_matrix_from(matrix),
          .range = full ? ColorRange::kFull : ColorRange::kLimited,
          .transfer = color_transfer_from(transfer)};
}

// Whether the media with this data reference are in the file itself.
bool lies_in_this_file(std::span<const uint8_t> dinf, uint16_t number) {
  BigEndianReader reader(mp4_box_in(dinf, box_named("dref")));
  reader.skip(8);
  Mp4Boxes references(reader.rest());
  Mp4Box box;
  for (uint32_t i = 1; references.next(box); ++i) {
    if (i == number) return box.content.size() >= 4 && (box.content[3] & 1);
  }
  return true;  // default for files that do not specify it
}

Result<void> read_mpeg4(std::span<const uint8_t> esds, VideoTrack& track) {
  const ElementaryStream stream = read_esds(esds);
  switch (stream.object_type) {
    case -1:
      return corrupt_video(kMp4Name, "its esds box is damaged");
    case 0x20:
      track.parameters.assign(stream.specific.begin(), stream.specific.end());
      return {};
    case 0x6C:
      track.codec = VideoCodec::kMJPEG;
      return {};
    default:
      return unsupported_video(
          kMp4Name, "contains images of the object type " + std::to_string(stream.object_type),
          kReencode);
  }
}

}  // namespace

Result<void> read_mp4_sample_entry(std::span<const uint8_t> stsd, std::span<const uint8_t> dinf,
                                   uint32_t number, VideoTrack& track) {
  BigEndianReader list(stsd);
  list.skip(8);  // version, flags, count
  Mp4Boxes entries(list.rest());
  Mp4Box entry;
  for (uint32_t i = 0; i < number; ++i) {
    if (!entries.next(entry)) {
      return corrupt_video(kMp4Name, "its stsd box has no entry " + std::to_string(number));
    }
  }
  if (entry.type == box_named("encv")) {
    return unsupported_video(kMp4Name, "is encrypted", "decrypt it first");
  }
  const CodedAs* coding = nullptr;
  for (const CodedAs& each : kCodings) {
    if (each.name == entry.type) coding = &each;
  }
  if (!coding) {
    return unsupported_video(kMp4Name, "contains images of the codec " + name_of(entry.type),
                             kReencode);
  }
  BigEndianReader reader(entry.content);
  reader.skip(6);
  const uint16_t reference = reader.u16();
  reader.skip(16);
  track.width = reader.u16();
  track.height = reader.u16();
  reader.skip(50);
  if (!reader.good()) return corrupt_video(kMp4Name, "its stsd box is too short");
  if (!lies_in_this_file(dinf, reference)) {
    return unsupported_video(kMp4Name, "has its images in another file, which is never opened",
                             "merge them into one file: ffmpeg -i in.mov -c copy out.mp4");
  }
  track.codec = coding->codec;
  const std::span<const uint8_t> boxes = reader.rest();
  if (const auto vpcc = mp4_box_in(boxes, box_named("vpcC")); !vpcc.empty()) {
    track.color = read_vp_color(vpcc);
  }
  if (const auto colr = mp4_box_in(boxes, box_named("colr")); !colr.empty()) {
    track.color = read_color(colr);
  }
  if (coding->parameters == 0) return {};
  const std::span<const uint8_t> parameters = mp4_box_in(boxes, coding->parameters);
  if (parameters.empty()) {
    return corrupt_video(kMp4Name,
                         name_of(entry.type) + " without its box " + name_of(coding->parameters));
  }
  if (coding->codec == VideoCodec::kMPEG4) return read_mpeg4(parameters, track);
  track.parameters.assign(parameters.begin(), parameters.end());
  return {};
}

}  // namespace headrace
