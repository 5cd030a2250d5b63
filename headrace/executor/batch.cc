// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/batch.h"

#include <algorithm>
#include <cstring>

#include "headrace/base/pages.h"
#include "headrace/executor/slots.h"

namespace headrace {
namespace {

const ErrorCode kNoSuchField{
    "HR0740", ErrorKind::kConfig, "no such field in the batch",
    "A batch has the fields that the loader delivers; fields= selects them."};

const ErrorCode kShapeDiffers{
    "HR0741", ErrorKind::kData, "value of another shape",
    "Every record of a dense field must have the shape that the pipeline promises. A source whose "
    "records differ needs ragged=\"list\" or a step that makes them equal."};

// What frameworks want that take memory as it is (XLA, Eigen); slots are aligned to pages.
constexpr std::align_val_t kItemAlignment{64};

// Memory of one ragged item.
std::shared_ptr<void> make_item(size_t bytes) {
  if (bytes >= kLargeBytes) return make_pages(bytes);  // Note [Why large memory is mapped]
  return {::operator new(std::max<size_t>(bytes, 1), kItemAlignment),
          [](void* p) { ::operator delete(p, kItemAlignment); }};
}

bool is_picture(const Output& output) {
  return output.origin == OutputOrigin::kField && is_picture(output.state.kind);
}

}  // namespace

const BatchField& Batch::operator[](std::string_view name) const {
  for (const BatchField& field : fields) {
    if (field.name == name) return field;
  }
  raise(kNoSuchField, "the batch has no field \"" + std::string(name) + "\"");
}

BatchBuilder::BatchBuilder(const Plan& plan, const Source& source, int64_t epoch, int64_t index,
                           BatchRange range, int64_t epoch_size, const Memory& memory)
    : plan_(plan),
      source_(source),
      epoch_(epoch),
      index_(index),
      range_(range),
      epoch_size_(epoch_size),
      fields_(plan.outputs().size()),
      dropped_(range.size()) {
  const size_t count = static_cast<size_t>(rows());
  for (size_t i = 0; i < fields_.size(); ++i) {
    const Output& output = plan.outputs()[i];
    FieldMemory& field = fields_[i];
    if (!output.as_list) {
      field.lease = memory(i, output.bytes_per_record * count);
      field.data = static_cast<uint8_t*>(field.lease.get());
    } else if (is_string(output.state.kind)) {
      field.strings.resize(count);
    } else {
      field.items.resize(count);
      field.item_memory.resize(count);
    }
  }
}

void BatchBuilder::write(std::span<RowSource> sources, Renderer& renderer) {
  thread_local std::vector<RenderTask> tasks;
  thread_local std::vector<RowSource*> owners;
  tasks.clear();
  owners.clear();
  for (RowSource& source : sources) {
    for (size_t i = 0; i < fields_.size() && source.result; ++i) {
      const Output& output = plan_.outputs()[i];
      FieldMemory& field = fields_[i];
      if (!is_picture(output)) {
        source.result = output.as_list ? write_list_value(output, field, source)
                                       : write_value(output, field, source);
        continue;
      }
      RenderTask task;
      task.recipe = &source.record->fields[output.field].picture;
      task.target.format = plan_.options().memory_format;
      const Size size = task.recipe->size();
      const size_t bytes = size_t(size.height) * size.width * task.recipe->channels() *
                           size_of(task.recipe->dtype());
      if (output.as_list) {
        field.item_memory[source.row] = make_item(bytes);
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
            Error{.code = &kShapeDiffers,
                  .what = output.name + " is " + std::to_string(task.recipe->channels()) + " x " +
                          std::to_string(size.height) + " x " + std::to_string(size.width) +
                          ", the pipeline promises another shape"};
        continue;
      } else {
        task.target.data = field.data + output.bytes_per_record * source.row;
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
}

Result<void> BatchBuilder::write_value(const Output& output, FieldMemory& field,
                                       RowSource& source) {
  uint8_t* to = field.data + output.bytes_per_record * source.row;
  const int64_t position = range_.begin + source.row;
  switch (output.origin) {
    case OutputOrigin::kId:
      std::memcpy(to, &source.record->index, 8);
      return {};
    case OutputOrigin::kValid:
      *to = position < epoch_size_;
      return {};
    case OutputOrigin::kKey:
      return {};
    case OutputOrigin::kField:
      break;
  }
  const FieldValue& value = source.record->fields[output.field];
  if (value.bytes.empty() && output.bytes_per_record == 8) {
    std::memcpy(to, &value.scalar, 8);
    return {};
  }
  if (value.bytes.size() != output.bytes_per_record) {
    return Error{.code = &kShapeDiffers,
                 .what = output.name + " has " + std::to_string(value.bytes.size()) +
                         " bytes, the pipeline promises " +
                         std::to_string(output.bytes_per_record)};
  }
  std::memcpy(to, value.bytes.data(), value.bytes.size());
  return {};
}

Result<void> BatchBuilder::write_list_value(const Output& output, FieldMemory& field,
                                            RowSource& source) {
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
  const bool scalar = value.bytes.empty() && output.state.shape.empty();
  const size_t bytes = scalar ? 8 : value.bytes.size();
  std::shared_ptr<void> memory = make_item(bytes);
  source.list_bytes += bytes;
  const void* from = scalar ? static_cast<const void*>(&value.scalar) : value.bytes.data();
  if (bytes > 0) std::memcpy(memory.get(), from, bytes);
  field.items[source.row] = {
      memory.get(), output.state.dtype, value.shape.empty() ? output.state.shape : value.shape, {}};
  field.item_memory[source.row] = std::move(memory);
  return {};
}

TensorView BatchBuilder::view_of(const Output& output, const FieldMemory& field,
                                 int64_t rows) const {
  TensorView view{field.data, output.state.dtype, {rows}, {}};
  if (output.origin == OutputOrigin::kId) view.dtype = DType::kInt64;
  if (output.origin == OutputOrigin::kValid) view.dtype = DType::kBool;
  if (output.origin != OutputOrigin::kField) return view;
  const Shape& shape = output.state.shape;
  view.shape.insert(view.shape.end(), shape.begin(), shape.end());
  if (is_picture(output) && plan_.options().memory_format == MemoryFormat::kChannelsLast) {
    view.strides = {element_count(shape), 1, shape[2] * shape[0], shape[0]};
  }
  return view;
}

int64_t BatchBuilder::close_gaps() {
  int64_t kept = 0;
  for (int64_t row = 0; row < rows(); ++row) {
    if (dropped_[row]) continue;
    for (size_t i = 0; i < fields_.size() && kept != row; ++i) {
      FieldMemory& field = fields_[i];
      const size_t bytes = plan_.outputs()[i].bytes_per_record;
      if (field.data) std::memmove(field.data + bytes * kept, field.data + bytes * row, bytes);
      if (!field.strings.empty()) field.strings[kept] = std::move(field.strings[row]);
      if (!field.items.empty()) {
        field.items[kept] = field.items[row];
        field.item_memory[kept] = std::move(field.item_memory[row]);
      }
    }
    ++kept;
  }
  return kept;
}

Batch BatchBuilder::finish() {
  const int64_t kept = close_gaps();
  Batch batch{epoch_, index_, kept, {}};
  for (size_t i = 0; i < fields_.size(); ++i) {
    const Output& output = plan_.outputs()[i];
    FieldMemory& field = fields_[i];
    BatchField out;
    out.name = output.name;
    out.is_list = output.as_list;
    out.is_text = output.origin == OutputOrigin::kKey || output.state.kind == FieldKind::kText;
    out.is_bytes = output.state.kind == FieldKind::kBytes;
    if (output.as_list) {
      field.strings.resize(field.strings.empty() ? 0 : kept);
      field.items.resize(field.items.empty() ? 0 : kept);
      out.strings = std::move(field.strings);
      out.items = std::move(field.items);
      // shared: any item's view keeps all items of the batch, as one lease does for dense fields
      out.lease =
          std::make_shared<std::vector<std::shared_ptr<void>>>(std::move(field.item_memory));
    } else {
      out.view = view_of(output, field, kept);
      out.lease = std::move(field.lease);
    }
    batch.fields.push_back(std::move(out));
  }
  return batch;
}

}  // namespace headrace
