// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/batch/batch_builder.h"

#include <algorithm>
#include <cstring>

#include "headrace/base/clock.h"
#include "headrace/executor/memory/slots.h"
#include "headrace/fields/audio.h"

namespace headrace {
namespace {

const ErrorCode kShapeDiffers{
    "HR0741", ErrorKind::kData, "value of another shape",
    "Every record of a dense field must have the shape that the pipeline promises. A source whose "
    "records differ needs ragged=\"list\" or a step that makes them equal."};

const ErrorCode kRowsDifferAtEnd{
    "HR0125", ErrorKind::kData, "rows that belong together differ in number",
    "Fields of one row group (boxes, their labels and areas) share their lengths or offsets in a "
    "batch, so that each record has as many rows in one as in the others. A step has changed the "
    "rows of one of them alone: a function that drops rows has to take all of the group."};

const ErrorCode kListedTooLarge{
    "HR0707", ErrorKind::kResource, "picture or sound in a list exceeds the memory",
    "A field that is delivered as a list has values of any size, and this one alone would take "
    "more than half of what memory_limit leaves beside slots. Nothing was allocated. A step that "
    "makes it smaller (Resize, a crop; RandomClip, CenterClip), or a higher memory_limit."};

// One picture a record.
bool is_picture(const Output& output) {
  return output.origin == OutputOrigin::kField && is_picture(output.state.kind);
}

}  // namespace

Error listed_too_large(const std::string& name, DType dtype, const Shape& shape, size_t most) {
  return {.code = &kListedTooLarge,
          .what = "\"" + name + "\" would be " + text_of(dtype, shape) + ", memory_limit leaves " +
                  std::to_string(most >> 20) + " MiB"};
}

Error shape_differs(std::string what) { return {.code = &kShapeDiffers, .what = std::move(what)}; }

BatchBuilder::BatchBuilder(const Plan& plan, const Source& source, int64_t epoch, int64_t index,
                           BatchRange range, int64_t epoch_size, const Memory& memory,
                           const OnDevice& on_device, ForeseenRows foreseen)
    : plan_(plan),
      source_(source),
      epoch_(epoch),
      index_(index),
      range_(range),
      epoch_size_(epoch_size),
      decoding_(on_device.left.decodes_any() ? on_device.decoding : nullptr),
      fields_(plan.outputs().size()),
      dropped_(range.size()),
      memory_(memory) {
  const size_t count = static_cast<size_t>(rows());
  for (size_t i = 0; i < fields_.size(); ++i) {
    const Output& output = plan.outputs()[i];
    FieldMemory& field = fields_[i];
    if (!output.as_list) {
      field.row_bytes = slot_row_bytes(output, i, on_device.left);
      field.lease = memory(i, field.row_bytes * count);
      field.data = static_cast<uint8_t*>(field.lease.get());
      if (output.is_clip()) field.pictures = std::ssize(output.pictures);
      if (!on_device.left.finishes(i)) continue;
      const auto finished = [memory = on_device.finished, i](size_t bytes) {
        std::shared_ptr<void> kept = memory(i, bytes);
        return kept ? kept : make_pages(bytes);
      };
      const Shape shape = output.picture().shape;
      auto coded = on_device.left.decodes(i)
                       ? std::make_unique<CodedRows>(shape, rows(), on_device.decoding,
                                                     on_device.left.coded_row)
                       : nullptr;
      field.unfinished = std::make_shared<UnfinishedPictures>(
          shape, output.state.dtype, plan.options().memory_format, rows(), field.pictures,
          plan.batch_steps().size(), finished, std::move(coded));
    } else if (output.origin == OutputOrigin::kMask || output.origin == OutputOrigin::kOffsets) {
      // made of another's items
    } else if (is_string(output.state.kind)) {
      field.strings.resize(count);
    } else {
      field.items.resize(count);
      field.item_memory.resize(count);
      if (i < foreseen.size() && foreseen[i]) {
        field.places = std::move(foreseen[i]);
        field.places->tensor =
            field.places->layout.make([&](size_t bytes) { return memory(i, bytes); });
      }
    }
  }
}

void BatchBuilder::write(std::span<RowSource> sources, Renderer& renderer, size_t most_listed) {
  thread_local std::vector<RenderTask> tasks;
  thread_local std::vector<RowSource*> owners;
  thread_local std::deque<Recipe> beginnings;  // of recipes that a device ends; they stay in place
  tasks.clear();
  owners.clear();
  beginnings.clear();
  for (RowSource& source : sources) {
    for (size_t i = 0; i < fields_.size() && source.result; ++i) {
      const Output& output = plan_.outputs()[i];
      FieldMemory& field = fields_[i];
      if (output.is_clip()) {
        source.result = add_clip(output, field, source, most_listed, tasks, beginnings, renderer);
        owners.resize(tasks.size(), &source);
        continue;
      }
      if (!is_picture(output)) {
        source.result = output.as_list
                            ? write_list_value(output, field, source, renderer, most_listed)
                            : write_value(output, field, source, renderer);
        continue;
      }
      if (decoding_ && !field.unfinished) decoding_->count(DeviceDecoding::Place::kField);
      RenderTask task;
      task.recipe = &source.record->fields[output.field].picture;
      task.target.format = plan_.options().memory_format;
      const Size size = task.recipe->size();
      const size_t bytes = size_t(size.height) * size.width * task.recipe->channels() *
                           size_of(task.recipe->dtype());
      if (output.is_assembled()) {
        source.result =
            check_ragged(output, task.recipe->dtype(),
                         {task.recipe->channels(), size.height, size.width}, *source.record);
        if (!source.result) continue;
      }
      if (output.as_list && bytes > most_listed) {
        source.result =
            listed_too_large(output.name, task.recipe->dtype(),
                             {task.recipe->channels(), size.height, size.width}, most_listed);
        continue;
      }
      if (output.as_list) {
        field.item_memory[source.row] = memory_(i, bytes);
        source.list_bytes += bytes;
        task.target.data = field.item_memory[source.row].get();
        field.items[source.row] = {task.target.data,
                                   task.recipe->dtype(),
                                   {task.recipe->channels(), size.height, size.width},
                                   {}};
        if (task.target.format == MemoryFormat::kChannelsLast) {
          field.items[source.row].strides = {1, int64_t{size.width} * task.recipe->channels(),
                                             task.recipe->channels()};
        }
      } else if (bytes != output.bytes_per_record) {
        source.result =
            shape_differs(output.name + " is " + std::to_string(task.recipe->channels()) + " x " +
                          std::to_string(size.height) + " x " + std::to_string(size.width) +
                          ", the pipeline promises another shape");
        continue;
      } else if (!set_target(field, source.row, source.record->index, task, beginnings, renderer)) {
        continue;
      }
      tasks.push_back(std::move(task));
      owners.push_back(&source);
    }
  }
  if (tasks.empty()) return;
  renderer.render(tasks);
  for (size_t i = 0; i < tasks.size(); ++i) {
    owners[i]->warnings += tasks[i].warnings;
    if (!tasks[i].result && owners[i]->result) owners[i]->result = std::move(tasks[i].result);
  }
  beginnings.clear();  // they hold pictures
}

// To its place in the slot; where a device finishes it, as much of the recipe as is not its work.
// False where that is nothing.
bool BatchBuilder::set_target(FieldMemory& field, int64_t picture, int64_t record, RenderTask& task,
                              std::deque<Recipe>& beginnings, Renderer& renderer) {
  task.target.data = field.data + field.row_bytes / size_t(field.pictures) * size_t(picture);
  if (!field.unfinished) return true;
  Recipe beginning = *task.recipe;
  std::string_view why_not;
  const std::optional<RecipeEdit> end = take_end(beginning, why_not);
  uint8_t* bytes = nullptr;
  if (end && field.unfinished->set(picture, *end)) {
    const double begin = now();
    const bool taken = field.unfinished->take(picture, record, beginning, field.data);
    renderer.seconds().entropy += now() - begin;
    if (taken) return false;
    bytes = field.unfinished->bytes_of(picture, field.data);
    why_not = "a row of its slot that is too small";
  } else {
    if (end) why_not = "another dtype";
    field.unfinished->pass_over();
  }
  if (!bytes) {
    task.target.data = field.unfinished->finished(picture, why_not);
    return true;
  }
  task.target.data = bytes;
  task.target.format = MemoryFormat::kChannelsFirst;
  task.recipe = &beginnings.emplace_back(std::move(beginning));
  return true;
}

Result<void> BatchBuilder::write_value(const Output& output, FieldMemory& field, RowSource& source,
                                       Renderer& renderer) {
  uint8_t* to = field.data + field.row_bytes * size_t(source.row);
  const int64_t position = range_.begin + source.row;
  switch (output.origin) {
    case OutputOrigin::kId:
      std::memcpy(to, &source.record->index, 8);
      return {};
    case OutputOrigin::kValid:
      *to = position < epoch_size_;
      return {};
    case OutputOrigin::kLengths: {
      const Shape extents = extents_of(output, *source.record);
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
    return write_numbers(output, values[output.field], output.state.shape, to, renderer);
  }
  const Shape promised(output.state.shape.begin() + 1, output.state.shape.end());
  for (const int sound : output.sounds) {
    if (Result<void> written = write_numbers(output, values[sound], promised, to, renderer);
        !written) {
      return written;
    }
    to += field.row_bytes / output.sounds.size();
  }
  return {};
}

Result<void> BatchBuilder::write_numbers(const Output& output, const FieldValue& value,
                                         const Shape& promised, uint8_t* to, Renderer& renderer) {
  const auto bytes = static_cast<size_t>(element_count(promised)) * size_of(output.state.dtype);
  if (value.sound.is_encoded()) {
    if (shape_of(value.sound) != promised) {
      return Error{.code = &kShapeDiffers,
                   .what = output.name + " is " + text_of(DType::kFloat32, shape_of(value.sound)) +
                           ", the pipeline promises " + text_of(output.state.dtype, promised)};
    }
    return decode_sound(value.sound, renderer.sounds(), reinterpret_cast<float*>(to),
                        value.sound.frames());
  }
  if (value.bytes.empty() && bytes == 8) {
    std::memcpy(to, &value.scalar, 8);
    return {};
  }
  const bool other_form = value.kind == FieldKind::kAudio && value.shape != promised;
  if (value.bytes.size() != bytes || other_form) {
    return Error{.code = &kShapeDiffers,
                 .what = output.name + " has " + std::to_string(value.bytes.size()) +
                         " bytes, the pipeline promises " + std::to_string(bytes)};
  }
  std::memcpy(to, value.bytes.data(), value.bytes.size());
  return {};
}

// The record's own extents on the open axes of the field that `lengths` is about.
Shape BatchBuilder::extents_of(const Output& lengths, const Record& record) const {
  const FieldValue& value = record.fields[lengths.field];
  const Shape& promised = plan_.outputs()[lengths.companion].state.shape;
  Shape shape = value.sound.is_encoded() ? shape_of(value.sound) : value.shape;
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

// What is to become one tensor has to have the shape that the others have, but for the open axes,
// and as many rows as the rest of its row group.
Result<void> BatchBuilder::check_ragged(const Output& output, DType dtype, const Shape& shape,
                                        const Record& record) const {
  const Shape& promised = output.state.shape;
  const auto fits = [](int64_t wanted, int64_t is) {
    return is >= 0 && (wanted < 0 || wanted == is);
  };
  if (dtype != output.state.dtype || !std::ranges::equal(promised, shape, fits)) {
    return Error{.code = &kShapeDiffers,
                 .what = output.name + " is " + text_of(dtype, shape) + ", the pipeline promises " +
                         text_of(output.state)};
  }
  const Output& leader = plan_.outputs()[plan_.outputs()[output.companion].companion];
  const Shape& rows = record.fields[leader.field].shape;
  if (&leader == &output || is_picture(output) || rows.empty() || rows[0] == shape[0]) return {};
  return Error{.code = &kRowsDifferAtEnd,
               .what = "\"" + output.name + "\" has " + std::to_string(shape[0]) + " rows, \"" +
                       leader.name + "\" " + std::to_string(rows[0]),
               .hint = "ragged=\"list\" takes them as they are"};
}

Result<void> BatchBuilder::write_list_value(const Output& output, FieldMemory& field,
                                            RowSource& source, Renderer& renderer,
                                            size_t most_listed) {
  if (output.origin == OutputOrigin::kMask || output.origin == OutputOrigin::kOffsets) return {};
  if (output.origin == OutputOrigin::kKey) {
    field.strings[source.row] = source_.key(source.record->index);
    return {};
  }
  const FieldValue& value = source.record->fields[output.field];
  if (!field.strings.empty()) {
    field.strings[source.row].assign(reinterpret_cast<const char*>(value.bytes.data()),
                                     value.bytes.size());
    source.list_bytes += value.bytes.size();
    return {};
  }
  const Sound& sound = value.sound;
  const Shape shape = sound.is_encoded()    ? shape_of(sound)
                      : value.shape.empty() ? output.state.shape
                                            : value.shape;
  if (output.is_assembled()) {
    if (Result<void> fits = check_ragged(output, output.state.dtype, shape, *source.record); !fits)
      return fits;
  }
  const bool scalar = value.bytes.empty() && output.state.shape.empty();
  const size_t bytes = scalar ? 8 : sound.is_encoded() ? sound.sample_bytes() : value.bytes.size();
  if (sound.is_encoded() && bytes > most_listed) {
    return listed_too_large(output.name, DType::kFloat32, shape, most_listed);
  }
  const TensorView to = make_item(output, field, source, shape, bytes);
  if (sound.is_encoded()) {
    return decode_sound(sound, renderer.sounds(), static_cast<float*>(to.data),
                        to.strides.empty() ? sound.frames() : to.strides[0]);
  }
  const void* from = scalar ? static_cast<const void*>(&value.scalar) : value.bytes.data();
  if (!to.strides.empty()) {
    field.places->layout.copy({const_cast<void*>(from), output.state.dtype, shape, {}}, to);
  } else if (bytes > 0) {
    std::memcpy(to.data, from, bytes);
  }
  return {};
}

TensorView BatchBuilder::view_of(const Output& output, const FieldMemory& field,
                                 int64_t rows) const {
  TensorView view{field.data, output.state.dtype, {rows}, {}};
  if (output.origin == OutputOrigin::kId) view.dtype = DType::kInt64;
  if (output.origin == OutputOrigin::kValid) view.dtype = DType::kBool;
  if (output.origin != OutputOrigin::kField && output.origin != OutputOrigin::kLengths) return view;
  const Shape& shape = output.state.shape;
  if (output.is_clip()) {
    return clip_view(output, field.data, shape, plan_.options().memory_format, rows);
  }
  view.shape.insert(view.shape.end(), shape.begin(), shape.end());
  if (is_picture(output) && plan_.options().memory_format == MemoryFormat::kChannelsLast) {
    view.strides = {element_count(shape), 1, shape[2] * shape[0], shape[0]};
  }
  return view;
}

void BatchBuilder::close_gaps() {
  if (kept_) return;
  int64_t kept = 0;
  for (int64_t row = 0; row < rows(); ++row) {
    if (dropped_[row]) continue;
    for (size_t i = 0; i < fields_.size() && kept != row; ++i) {
      FieldMemory& field = fields_[i];
      const size_t bytes = field.row_bytes;
      const bool dense = !field.unfinished || field.unfinished->lies_dense();
      if (field.data && dense) {
        std::memmove(field.data + bytes * kept, field.data + bytes * row, bytes);
      }
      if (field.unfinished) field.unfinished->move(row, kept);
      if (!field.strings.empty()) field.strings[kept] = std::move(field.strings[row]);
      if (!field.items.empty()) {
        field.items[kept] = field.items[row];
        field.item_memory[kept] = std::move(field.item_memory[row]);
      }
    }
    ++kept;
  }
  for (FieldMemory& field : fields_) {
    field.strings.resize(field.strings.empty() ? 0 : static_cast<size_t>(kept));
    field.items.resize(field.items.empty() ? 0 : static_cast<size_t>(kept));
  }
  kept_ = kept;
}

std::vector<int64_t> BatchBuilder::group_begins() const {
  std::vector<int64_t> out;
  if (plan_.batch_steps().empty()) return out;
  int64_t kept = 0, last = -1;  // rows so far, and the group of the last of them
  for (int64_t row = 0; row < rows(); ++row) {
    if (dropped_[row]) continue;
    if (row / plan_.batch_group() != last) out.push_back(kept);
    last = row / plan_.batch_group();
    ++kept;
  }
  return out;
}

Batch BatchBuilder::finish(size_t most_assembled) {
  close_gaps();
  if (assembled_.empty()) {
    bytes_to_assemble(most_assembled);
    assemble();
  }
  Batch batch{epoch_, index_, *kept_, {}};
  for (size_t i = 0; i < fields_.size(); ++i) {
    const Output& output = plan_.outputs()[i];
    FieldMemory& field = fields_[i];
    BatchField out;
    if (output.is_assembled()) {
      out = std::move(assembled_[i]);
    } else if (output.as_list) {
      out.is_list = true;
      out.strings = std::move(field.strings);
      out.items = std::move(field.items);
      // shared: any item's view keeps all items of the batch, as one lease does for dense fields
      out.lease =
          std::make_shared<std::vector<std::shared_ptr<void>>>(std::move(field.item_memory));
    } else {
      out.view = view_of(output, field, *kept_);
      out.lease = std::move(field.lease);
      if (field.unfinished) field.unfinished->settle(*kept_);
      out.unfinished = std::move(field.unfinished);
    }
    out.name = output.name;
    out.is_text = output.origin == OutputOrigin::kKey || output.state.kind == FieldKind::kText;
    out.is_bytes = output.state.kind == FieldKind::kBytes;
    batch.fields.push_back(std::move(out));
  }
  batch.group_begins = group_begins();
  return batch;
}

}  // namespace headrace
