// SPDX-License-Identifier: Apache-2.0
// Writes values other than pictures into a batch's rows: numbers, audio, text.
#include <algorithm>
#include <cstring>

#include "headrace/executor/batch/row_writer.h"
#include "headrace/fields/audio.h"

namespace headrace {
namespace {

const ErrorCode kRowsDifferAtEnd{
    "HR0125", ErrorKind::kData, "row group fields differ in row count",
    "Fields of one row group (boxes, their labels and areas) share their lengths or offsets in a "
    "batch, so each record must have the same number of rows in all of them. A transform changed "
    "the rows of only one field: a function that drops rows has to take every field of the group."};

// The record's extents along the open axes of the field that `lengths` describes.
Shape extents_of(const Plan& plan, const Output& lengths, const Record& record) {
  const FieldValue& value = record.fields[lengths.field];
  const Shape& promised = plan.outputs()[lengths.companion].state.shape;
  Shape shape = value.audio.is_encoded() ? shape_of(value.audio) : value.shape;
  if (is_picture(value.kind)) {
    const Size size = value.picture.size();
    shape = {value.picture.channels(), size.height, size.width};
  }
  Shape open;
  for (size_t axis = 0; axis < promised.size(); ++axis) {
    if (promised[axis] < 0) open.push_back(axis < shape.size() ? shape[axis] : 0);
  }
  return open;
}

}  // namespace

Result<void> RowWriter::write_value(size_t i, RowSource& source) {
  const Output& output = rows_.plan.outputs()[i];
  OutputMemory& field = rows_.fields[i];
  uint8_t* to = field.data + field.row_bytes * size_t(source.row);
  const int64_t position = rows_.range.begin + source.row;
  switch (output.origin) {
    case OutputOrigin::kId:
      std::memcpy(to, &source.record->index, 8);
      return {};
    case OutputOrigin::kValid:
      *to = position < rows_.range.valid_end;
      return {};
    case OutputOrigin::kLengths: {
      const Shape extents = extents_of(rows_.plan, output, *source.record);
      std::memcpy(to, extents.data(), extents.size() * sizeof(int64_t));
      return {};
    }
    case OutputOrigin::kKey:
    case OutputOrigin::kMask:
    case OutputOrigin::kOffsets:
      return {};
    case OutputOrigin::kField:
      break;
  }
  const std::vector<FieldValue>& values = source.record->fields;
  if (output.sounds.empty()) {
    return write_numbers(output, values[output.field], output.state.shape, to);
  }
  const Shape promised(output.state.shape.begin() + 1, output.state.shape.end());
  for (const int audio : output.sounds) {
    if (Result<void> written = write_numbers(output, values[audio], promised, to); !written) {
      return written;
    }
    to += field.row_bytes / output.sounds.size();
  }
  return {};
}

Result<void> RowWriter::write_numbers(const Output& output, const FieldValue& value,
                                      const Shape& promised, uint8_t* to) {
  const auto bytes = static_cast<size_t>(element_count(promised)) * size_of(output.state.dtype);
  if (value.audio.is_encoded()) {
    if (shape_of(value.audio) != promised) {
      return shape_differs(output.name + " is " + text_of(DType::kFloat32, shape_of(value.audio)) +
                           ", but the pipeline declares " + text_of(output.state.dtype, promised));
    }
    return decode_samples(value.audio, renderer_.audio_decoders(), reinterpret_cast<float*>(to),
                          value.audio.frames());
  }
  if (value.bytes.empty() && bytes == 8) {
    std::memcpy(to, &value.scalar, 8);
    return {};
  }
  const bool other_form = value.kind == FieldKind::kAudio && value.shape != promised;
  if (value.bytes.size() != bytes || other_form) {
    return shape_differs(output.name + " has " + std::to_string(value.bytes.size()) +
                         " bytes, but the pipeline declares " + std::to_string(bytes));
  }
  std::memcpy(to, value.bytes.data(), value.bytes.size());
  return {};
}

Result<void> RowWriter::write_list_value(size_t i, RowSource& source) {
  const Output& output = rows_.plan.outputs()[i];
  OutputMemory& field = rows_.fields[i];
  if (output.origin == OutputOrigin::kMask || output.origin == OutputOrigin::kOffsets) return {};
  if (output.origin == OutputOrigin::kKey) {
    field.strings[source.row] = rows_.source.key(source.record->index);
    return {};
  }
  const FieldValue& value = source.record->fields[output.field];
  if (!field.strings.empty()) {
    field.strings[source.row].assign(reinterpret_cast<const char*>(value.bytes.data()),
                                     value.bytes.size());
    source.list_bytes += value.bytes.size();
    return {};
  }
  const AudioClip& audio = value.audio;
  const Shape shape = audio.is_encoded()    ? shape_of(audio)
                      : value.shape.empty() ? output.state.shape
                                            : value.shape;
  if (output.is_assembled()) {
    if (Result<void> fits = check_ragged(output, output.state.dtype, shape, *source.record); !fits)
      return fits;
  }
  const bool scalar = value.bytes.empty() && output.state.shape.empty();
  const size_t bytes = scalar ? 8 : audio.is_encoded() ? audio.sample_bytes() : value.bytes.size();
  if (audio.is_encoded() && bytes > max_listed_) {
    return list_too_large(output.name, DType::kFloat32, shape, max_listed_);
  }
  const TensorView to = make_item(i, source, shape, bytes);
  if (audio.is_encoded()) {
    return decode_samples(audio, renderer_.audio_decoders(), static_cast<float*>(to.data),
                          to.strides.empty() ? audio.frames() : to.strides[0]);
  }
  const void* from = scalar ? static_cast<const void*>(&value.scalar) : value.bytes.data();
  if (!to.strides.empty()) {
    field.places->layout.copy({const_cast<void*>(from), output.state.dtype, shape, {}}, to);
  } else if (bytes > 0) {
    std::memcpy(to.data, from, bytes);
  }
  return {};
}

// Memory for a row's value: its part of the batch's tensor if that was predicted, otherwise
// separate memory.
TensorView RowWriter::make_item(size_t i, RowSource& source, const Shape& shape, size_t bytes) {
  OutputMemory& field = rows_.fields[i];
  TensorView& item = field.items[source.row];
  std::shared_ptr<void>& own = field.item_memory[source.row];
  if (field.places && field.places->shapes[source.row] == shape) {
    const auto row = static_cast<size_t>(source.row);
    own.reset();
    field.places->layout.fill(field.places->tensor.view.data, row, shape);
    item = field.places->layout.place(field.places->tensor.view.data, row, shape);
    return item;
  }
  own = rows_.memory(i, bytes);
  source.list_bytes += bytes;
  item = {own.get(), rows_.plan.outputs()[i].state.dtype, shape, {}};
  return item;
}

Result<void> RowWriter::check_ragged(const Output& output, DType dtype, const Shape& shape,
                                     const Record& record) const {
  const Shape& promised = output.state.shape;
  const auto fits = [](int64_t wanted, int64_t is) {
    return is >= 0 && (wanted < 0 || wanted == is);
  };
  if (dtype != output.state.dtype || !std::ranges::equal(promised, shape, fits)) {
    return shape_differs(output.name + " is " + text_of(dtype, shape) +
                         ", but the pipeline declares " + text_of(output.state));
  }
  const Output& leader = rows_.plan.outputs()[rows_.plan.outputs()[output.companion].companion];
  const Shape& rows = record.fields[leader.field].shape;
  if (&leader == &output || is_picture(output) || rows.empty() || rows[0] == shape[0]) return {};
  return Error{.code = &kRowsDifferAtEnd,
               .what = "\"" + output.name + "\" has " + std::to_string(shape[0]) + " rows, \"" +
                       leader.name + "\" " + std::to_string(rows[0]),
               .hint = "ragged=\"list\" accepts them"};
}

}  // namespace headrace
