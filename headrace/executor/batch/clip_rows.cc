// SPDX-License-Identifier: Apache-2.0
// Clips in a batch: a row holds its frames in sequence, each rendered in place.
//
// Each frame is contiguous, whatever axis order is delivered: with channels before time the
// result is a view with strides (with channels last, torch's channels_last_3d).
#include <algorithm>

#include "headrace/executor/batch/row_writer.h"

namespace headrace {
namespace {

// (C, H, W) of a picture of the clip.
Shape picture_shape(const Recipe& picture) {
  const Size size = picture.size();
  return {picture.channels(), size.height, size.width};
}

// The shape of the record's clip as delivered.
Shape clip_shape(const Output& output, const Shape& picture) {
  Shape shape = picture;
  const std::ptrdiff_t time = output.clip.channels_before_time ? 1 : 0;
  shape.insert(shape.begin() + time, output.clip.frames);
  if (output.clip.clips > 0) shape.insert(shape.begin(), output.clip.clips);
  return shape;
}

}  // namespace

TensorView clip_view(const Output& output, void* data, const Shape& shape, MemoryFormat format,
                     std::optional<int64_t> rows) {
  TensorView view{data, output.state.dtype, shape, {}};
  const size_t first = output.clip.clips > 0 ? 1 : 0;  // the first axis of each clip
  const bool before = output.clip.channels_before_time;
  const size_t time = first + (before ? 1 : 0), channel = first + (before ? 0 : 1);
  const int64_t channels = shape[channel], height = shape[first + 2], width = shape[first + 3];
  const int64_t frame = channels * height * width;
  if (before || format == MemoryFormat::kChannelsLast) {
    const bool last = format == MemoryFormat::kChannelsLast;
    view.strides.resize(shape.size());
    if (first) view.strides[0] = frame * shape[time];
    view.strides[time] = frame;
    view.strides[channel] = last ? 1 : height * width;
    view.strides[first + 2] = last ? width * channels : width;
    view.strides[first + 3] = last ? channels : 1;
  }
  if (!rows) return view;
  view.shape.insert(view.shape.begin(), *rows);
  if (!view.strides.empty()) {
    view.strides.insert(view.strides.begin(), element_count(shape));
  }
  return view;
}

Result<void> RowWriter::add_clip(size_t i, RowSource& source, Tasks& to_render) {
  const Output& output = rows_.plan.outputs()[i];
  OutputMemory& field = rows_.fields[i];
  const std::vector<FieldValue>& values = source.record->fields;
  const Recipe& first = values[static_cast<size_t>(output.pictures[0])].picture;
  const Shape picture = picture_shape(first);
  const size_t frame = static_cast<size_t>(element_count(picture)) * size_of(first.dtype());
  const size_t bytes = frame * output.pictures.size();
  for (const int each : output.pictures) {
    const Recipe& other = values[static_cast<size_t>(each)].picture;
    if (picture_shape(other) == picture && other.dtype() == first.dtype()) continue;
    return shape_differs("the frames of \"" + output.name + "\" are " +
                         text_of(first.dtype(), picture) + " and " +
                         text_of(other.dtype(), picture_shape(other)));
  }
  uint8_t* to = nullptr;  // for an output delivered as a list
  if (output.as_list) {
    const Shape shape = clip_shape(output, picture);
    if (bytes > max_listed_) {
      return list_too_large(output.name, first.dtype(), shape, max_listed_);
    }
    std::shared_ptr<void> memory = rows_.memory(i, bytes);
    source.list_bytes += bytes;
    to = static_cast<uint8_t*>(memory.get());
    field.items[size_t(source.row)] =
        clip_view(output, to, shape, rows_.plan.options().memory_format);
    field.item_memory[size_t(source.row)] = std::move(memory);
  } else if (bytes != output.bytes_per_record) {
    return shape_differs("the frames of \"" + output.name + "\" are " +
                         text_of(first.dtype(), picture) + ", but the pipeline declares " +
                         text_of(output.state));
  }
  const int64_t first_number = source.row * std::ssize(output.pictures);
  for (int64_t p = 0; p < std::ssize(output.pictures); ++p) {
    RenderTask task;
    task.recipe = &values[static_cast<size_t>(output.pictures[size_t(p)])].picture;
    task.target.format = rows_.plan.options().memory_format;
    task.target.data = to;
    if (to) {
      to += frame;
    } else if (!set_target(field, first_number + p, source.record->index, task, to_render)) {
      continue;
    }
    to_render.tasks.push_back(std::move(task));
  }
  return {};
}

}  // namespace headrace
