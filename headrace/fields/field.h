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

class File;  // storage/file.h

// The kind of a field as steps see it. One file of this folder per kind, whose KindRecord (kind.h)
// has the rest. Packs store the numbers: a new kind takes the next one.
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

// What a box's numbers mean, by torchvision's names. Packs store the numbers.
enum class BoxFormat : uint8_t {
  kUnsaid,  // nobody has said it: such boxes cannot follow a picture
  kXYXY,    // left, top, right, bottom, in pixels
  kXYWH,    // left, top, width, height, in pixels
  kCXCYWH,  // center, width, height, in pixels
  // The same as shares of the picture's width and height, 0 to 1: how files and losses have them.
  // No step moves such boxes; ConvertBoundingBoxFormat leads to pixels and back.
  kXYXYNormalized,
  kXYWHNormalized,
  kCXCYWHNormalized,
  // Turned boxes, in pixels and degrees against the clock.
  kXYWHR,     // the corner that is left and above where the angle is 0, width, height, angle
  kCXCYWHR,   // center, width, height, angle
  kXYXYXYXY,  // the corners, from that one with the clock
  kXYXYXYXYNormalized,
};
inline bool is_normalized(BoxFormat format) {
  return (format >= BoxFormat::kXYXYNormalized && format <= BoxFormat::kCXCYWHNormalized) ||
         format == BoxFormat::kXYXYXYXYNormalized;
}
inline bool is_rotated(BoxFormat format) { return format >= BoxFormat::kXYWHR; }
// How many numbers a box has: 4, 5 or 8.
int numbers_of(BoxFormat format);
std::string_view name_of(BoxFormat format);             // "xyxy"; "" where unsaid
BoxFormat box_format_from_name(std::string_view name);  // kUnsaid where there is no such

// How cropping steps treat boxes that extend over the image's edge, by torchvision's names. For
// boxes that are not rotated, soft and hard are the same; for rotated ones, soft is the least box
// of that angle around the visible part, and hard the largest one inside it.
enum class Clamping : uint8_t { kNone, kSoft, kHard };
std::string_view name_of(Clamping clamping);         // "soft"
Clamping clamping_from_name(std::string_view name);  // REQUIRES: one of the three names

// One field of a source's records. Images and masks are encoded bytes, or (C, H, W) uint8 tensors.
struct Field {
  std::string name;
  FieldKind kind = FieldKind::kTensor;
  DType dtype = DType::kUInt8;
  Shape shape = {};      // of a record's value, without the batch; -1 where records differ;
                         // empty for a scalar, text and bytes
  bool encoded = false;  // an image or mask whose shape is known only after its header is read
  BoxFormat box_format = BoxFormat::kUnsaid;  // of boxes
  Clamping clamping = Clamping::kSoft;        // of boxes
  // Fields whose rows are about the same objects (boxes, their labels, areas, masks) have one
  // number, and as many rows as one another in every record. 0: the field's rows are its own.
  uint8_t row_group = 0;
  int sample_rate = 0;  // of audio, frames a second; 0: unknown, or records differ
};

using Schema = std::vector<Field>;
// Index of the field with this name; schema.size() if the schema has no such field.
size_t field_number(const Schema& schema, std::string_view name);

// Static knowledge of a field at one point of a pipeline. Pictures: shape is (C, H, W), -1 if open.
struct FieldState {
  std::string name;
  FieldKind kind = FieldKind::kTensor;
  DType dtype = DType::kUInt8;
  Shape shape;
  std::string left_open_by;  // who made the shape vary: the source, or an operator
  BoxFormat box_format = BoxFormat::kUnsaid;
  Clamping clamping = Clamping::kSoft;  // of boxes (SetClampingMode)
  // For boxes: whether a later step asks which fraction of each box crops have left.
  bool keeps_shares = false;
  uint8_t row_group = 0;  // as Field has it
  int sample_rate = 0;    // of audio, as Field has it; the plan's records all have it
  // For a clip's picture, or one sound of several clips: its number, see Note [Clips are
  // pictures] in pipeline/plan_clips.cc. -1: it belongs to none.
  int clip_frame = -1;
};

// "uint8 (3, 224, ?)", as messages and plan() show it.
std::string text_of(DType dtype, const Shape& shape);
std::string text_of(const FieldState& state);

// One field of one record, as a source delivers it.
struct FieldData {
  std::span<const uint8_t>
      bytes;           // encoded picture, UTF-8 text, bytes, or the tensor's dense elements
  Shape shape;         // of a tensor that the schema leaves open; else empty
  int64_t scalar = 0;  // where `bytes` is empty and the schema says int64 scalar
  RowIndexSlot row_index = {};  // of an encoded picture or video
  // For an encoded picture: the size to which its annotations refer; 0 if they give none, or if
  // no field of the record has its coordinates.
  int annotated_width = 0, annotated_height = 0;
  // In place of `bytes`, for who takes it (RecordData::by_range): the open file. shared: with what
  // the value becomes.
  std::shared_ptr<const File> file = {};
};

}  // namespace headrace
