// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/batch/row_writer.h"

#include <string_view>
#include <utility>

#include "headrace/base/clock.h"

namespace headrace {
namespace {

const ErrorCode kShapeDiffers{
    "HR0741", ErrorKind::kData, "unexpected value shape",
    "Every record of a dense field must have the shape that the pipeline declares. A source whose "
    "records differ needs ragged=\"list\" or a transform that makes them equal."};

const ErrorCode kListedTooLarge{
    "HR0707", ErrorKind::kResource, "image or audio in a list exceeds the memory limit",
    "A field delivered as a list may have values of any size, but this value alone exceeds half of "
    "what memory_limit leaves after slots. Nothing was allocated. Use a transform that makes it "
    "smaller (Resize, a crop; RandomClip, CenterClip), or a higher memory_limit."};

}  // namespace

Error list_too_large(const std::string& name, DType dtype, const Shape& shape, size_t most) {
  return {.code = &kListedTooLarge,
          .what = "\"" + name + "\" would be " + text_of(dtype, shape) +
                  ", but memory_limit leaves " + std::to_string(most >> 20) + " MiB"};
}

Error shape_differs(std::string what) { return {.code = &kShapeDiffers, .what = std::move(what)}; }

void RowWriter::Tasks::clear() {
  tasks.clear();
  owners.clear();
  beginnings.clear();  // the outputs hold pictures
}

RowWriter::Tasks& RowWriter::tasks_of_this_thread() {
  thread_local Tasks tasks;
  tasks.clear();
  return tasks;
}

void RowWriter::write(std::span<RowSource> sources) {
  Tasks& to = tasks_of_this_thread();
  for (RowSource& source : sources) {
    for (size_t i = 0; i < rows_.fields.size() && source.result; ++i) {
      const Output& output = rows_.plan.outputs()[i];
      source.result = output.is_clip()     ? add_clip(i, source, to)
                      : is_picture(output) ? add_picture(i, source, to)
                      : output.as_list     ? write_list_value(i, source)
                                           : write_value(i, source);
      to.owners.resize(to.tasks.size(), &source);
    }
  }
  if (to.tasks.empty()) return;
  renderer_.render(to.tasks);
  for (size_t i = 0; i < to.tasks.size(); ++i) {
    RowSource& owner = *to.owners[i];
    RenderTask& task = to.tasks[i];
    owner.warnings += task.warnings;
    if (!task.result && owner.result) owner.result = std::move(task.result);
  }
  to.beginnings.clear();
}

Result<void> RowWriter::add_picture(size_t i, RowSource& source, Tasks& to) {
  const Output& output = rows_.plan.outputs()[i];
  OutputMemory& field = rows_.fields[i];
  if (rows_.decoding && !field.unfinished) rows_.decoding->count(DeviceDecoding::Place::kField);
  RenderTask task;
  const Recipe& recipe = source.record->fields[output.field].picture;
  task.recipe = &recipe;
  task.target.format = rows_.plan.options().memory_format;
  const Shape shape = {recipe.channels(), recipe.size().height, recipe.size().width};
  const size_t bytes = size_t(element_count(shape)) * size_of(recipe.dtype());
  if (output.is_assembled()) {
    if (Result<void> fits = check_ragged(output, recipe.dtype(), shape, *source.record); !fits) {
      return fits;
    }
  }
  if (output.as_list) {
    if (bytes > max_listed_) {
      return list_too_large(output.name, recipe.dtype(), shape, max_listed_);
    }
    std::shared_ptr<void>& own = field.item_memory[source.row];
    own = rows_.memory(i, bytes);
    source.list_bytes += bytes;
    task.target.data = own.get();
    TensorView& item = field.items[source.row];
    item = {task.target.data, recipe.dtype(), shape, {}};
    if (task.target.format == MemoryFormat::kChannelsLast) {
      item.strides = {1, shape[2] * shape[0], shape[0]};
    }
  } else if (bytes != output.bytes_per_record) {
    return shape_differs(output.name + " is " + std::to_string(shape[0]) + " x " +
                         std::to_string(shape[1]) + " x " + std::to_string(shape[2]) +
                         ", but the pipeline declares a different shape");
  } else if (!set_target(field, source.row, source.record->index, task, to)) {
    return {};
  }
  to.tasks.push_back(std::move(task));
  return {};
}

// Writes it to its position in the slot; if a device finishes it, only the part of the recipe
// before that.
bool RowWriter::set_target(OutputMemory& field, int64_t picture, int64_t record, RenderTask& task,
                           Tasks& to) {
  task.target.data = field.data + field.row_bytes / size_t(field.pictures) * size_t(picture);
  if (!field.unfinished) return true;
  Recipe beginning = *task.recipe;
  std::string_view why_not;
  const std::optional<RecipeEdit> end = take_end(beginning, why_not);
  uint8_t* bytes = nullptr;
  if (end && field.unfinished->set(picture, *end)) {
    const double begin = now();
    const bool taken = field.unfinished->take(picture, record, beginning, field.data);
    renderer_.seconds().coded += now() - begin;
    if (taken) return false;
    bytes = field.unfinished->bytes_of(picture, field.data);
    why_not = "a row of the slot that is too small";
  } else {
    if (end) why_not = "another dtype";
    field.unfinished->count_cpu_decode();
  }
  if (!bytes) {
    task.target.data = field.unfinished->finished(picture, why_not);
    return true;
  }
  task.target.data = bytes;
  task.target.format = MemoryFormat::kChannelsFirst;
  task.recipe = &to.beginnings.emplace_back(std::move(beginning));
  return true;
}

}  // namespace headrace
