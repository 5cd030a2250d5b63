// SPDX-License-Identifier: Apache-2.0
// Fields: names, kinds and shapes of a record's values, before any record is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/tensor.h"
#include "headrace/codecs/codec.h"

namespace headrace {

class File;         // storage/file.h
struct VideoTrack;  // codecs/video/video_track.h

// The kind of a field, as operators see it. Each kind has a file in this folder, with its
// KindRecord (kind.h). Packs store the numbers, so a new kind must take the next one.
enum class FieldKind : uint8_t {
  kImage,
  kMask,
  kLabel,
  kTensor,
  kText,
  kBytes,
  kBoxes,
  kKeypoints,
  kMasks,
  kAudio,
  kVideo,
};

// The format of boxes, with torchvision's names. Packs store the numbers of the enumerators.
enum class BoxFormat : uint8_t {
  kUnspecified,  // unspecified: such boxes cannot be transformed together with the image
  kXYXY,         // left, top, right, bottom, in pixels
  kXYWH,         // left, top, width, height, in pixels
  kCXCYWH,       // center, width, height, in pixels
  // The same as fractions of the image's width and height, 0 to 1, as in files and loss functions.
  // Operators do not transform such boxes; ConvertBoundingBoxFormat converts to pixels and back.
  kXYXYNormalized,
  kXYWHNormalized,
  kCXCYWHNormalized,
  // Rotated boxes, in pixels and counterclockwise degrees.
  kXYWHR,     // the corner that is the top left one at angle 0, width, height, angle
  kCXCYWHR,   // center, width, height, angle
  kXYXYXYXY,  // the four corners, clockwise from that one
  kXYXYXYXYNormalized,
};
inline bool is_normalized(BoxFormat format) {
  return (format >= BoxFormat::kXYXYNormalized && format <= BoxFormat::kCXCYWHNormalized) ||
         format == BoxFormat::kXYXYXYXYNormalized;
}
inline bool is_rotated(BoxFormat format) { return format >= BoxFormat::kXYWHR; }
// How many numbers a box has: 4, 5 or 8.
int numbers_of(BoxFormat format);
std::string_view name_of(BoxFormat format);             // "xyxy"; "" for kUnspecified
BoxFormat box_format_from_name(std::string_view name);  // kUnspecified if unknown

// How cropping operators treat boxes that extend beyond the image's edge, with torchvision's names.
// For boxes that are not rotated, soft and hard are the same; for rotated ones, soft gives the
// smallest box of that angle around the visible part, and hard the largest one inside it.
enum class Clamping : uint8_t { kNone, kSoft, kHard };
std::string_view name_of(Clamping clamping);         // "soft"
Clamping clamping_from_name(std::string_view name);  // REQUIRES: one of the three names

// One field of a source's records. Images and masks are encoded bytes, or (C, H, W) uint8 tensors.
struct Field {
  std::string name;
  FieldKind kind = FieldKind::kTensor;
  DType dtype = DType::kUInt8;
  Shape shape = {};      // of one record's value, without the batch; -1 where records differ;
                         // empty for a scalar, text and bytes
  bool encoded = false;  // stored as a file (image, audio, video), decoded on demand
  BoxFormat box_format = BoxFormat::kUnspecified;  // of boxes
  Clamping clamping = Clamping::kSoft;             // of boxes
  // Fields whose rows describe the same objects (boxes, their labels, areas, masks) have the same
  // number, and the same number of rows in every record. 0: not in a row group.
  uint8_t row_group = 0;
  int sample_rate = 0;  // of audio, frames per second; 0: unknown, or records differ
};

using Schema = std::vector<Field>;
// Index of the field with this name; schema.size() if the schema has no such field.
size_t field_number(const Schema& schema, std::string_view name);

// What is statically known about a field at one point of a pipeline. For images and masks, shape is
// (C, H, W), -1 if open.
struct FieldState {
  std::string name;
  FieldKind kind = FieldKind::kTensor;
  DType dtype = DType::kUInt8;
  Shape shape;
  std::string left_open_by;  // what made the shape vary: the source or an operator
  BoxFormat box_format = BoxFormat::kUnspecified;
  Clamping clamping = Clamping::kSoft;  // of boxes (SetClampingMode)
  // For boxes: whether a later operator needs the fraction of each box that crops have left.
  bool keeps_shares = false;
  uint8_t row_group = 0;  // as in Field
  int sample_rate = 0;    // of audio, as in Field; the same for all records of the plan
  // For an image of a clip, or the audio of one of several clips: its number, see Note [Clips are
  // pictures] in pipeline/plan_clips.cc. -1: not part of a clip.
  int clip_frame = -1;
};

// "uint8 (3, 224, ?)", as shown in messages and by plan().
std::string text_of(DType dtype, const Shape& shape);
std::string text_of(const FieldState& state);

// One field of one record, as a source delivers it.
struct FieldData {
  std::span<const uint8_t>
      bytes;                    // encoded media, UTF-8 text, bytes, or the tensor's dense elements
  Shape shape;                  // of a tensor whose shape the schema leaves open; else empty
  int64_t scalar = 0;           // the value, if the schema says int64 scalar; `bytes` is empty
  RowIndexSlot row_index = {};  // of an encoded image or video
  // For an encoded image: the size to which its annotations refer; 0 if they do not state one, or
  // if no field of the record has coordinates in the image.
  int annotated_width = 0, annotated_height = 0;
  // The open file, instead of `bytes`, if the caller accepts it (RecordData::by_range). shared:
  // with values made from it.
  std::shared_ptr<const File> file = {};
  // The table of that file, if it is a video whose source has read it. shared: with other records.
  std::shared_ptr<const VideoTrack> track = {};
};

}  // namespace headrace
