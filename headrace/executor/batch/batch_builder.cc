// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/batch/batch_builder.h"

#include <algorithm>
#include <cstring>

#include "headrace/executor/memory/slots.h"

namespace headrace {
BatchBuilder::BatchBuilder(const Plan& plan, const Source& source, int64_t epoch, int64_t index,
                           BatchRange range, const Memory& memory, const OnDevice& on_device,
                           PredictedRows predicted)
    : epoch_(epoch),
      index_(index),
      rows_{.plan = plan,
            .source = source,
            .range = range,
            .memory = memory,
            .decoding = on_device.left.decodes_any() ? on_device.decoding : nullptr,
            .fields = std::vector<OutputMemory>(plan.outputs().size())},
      dropped_(range.size()) {
  std::vector<OutputMemory>& fields = rows_.fields;
  const size_t count = static_cast<size_t>(rows());
  for (size_t i = 0; i < fields.size(); ++i) {
    const Output& output = plan.outputs()[i];
    OutputMemory& field = fields[i];
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
      // made from the items of another output
    } else if (is_string(output.state.kind)) {
      field.strings.resize(count);
    } else {
      field.items.resize(count);
      field.item_memory.resize(count);
      if (i < predicted.size() && predicted[i]) {
        field.places = std::move(predicted[i]);
        field.places->tensor =
            field.places->layout.make([&](size_t bytes) { return memory(i, bytes); });
      }
    }
  }
}

bool BatchBuilder::fits(const std::vector<std::span<const uint8_t>>& bytes, int64_t count) const {
  if (bytes.size() != rows_.fields.size()) return false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i].size() != rows_.fields[i].row_bytes * size_t(count)) return false;
  }
  return true;
}

void BatchBuilder::put(int64_t first, int64_t count,
                       const std::vector<std::span<const uint8_t>>& bytes,
                       const std::vector<int>& dropped) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    OutputMemory& field = rows_.fields[i];
    if (!bytes[i].empty()) {
      std::memcpy(field.data + field.row_bytes * size_t(first), bytes[i].data(), bytes[i].size());
    }
  }
  for (const int row : dropped) {
    if (row >= 0 && row < count) drop(static_cast<int>(first + row));
  }
}

TensorView BatchBuilder::view_of(const Output& output, const OutputMemory& field,
                                 int64_t rows) const {
  TensorView view{field.data, output.state.dtype, {rows}, {}};
  if (output.origin == OutputOrigin::kId) view.dtype = DType::kInt64;
  if (output.origin == OutputOrigin::kValid) view.dtype = DType::kBool;
  if (output.origin != OutputOrigin::kField && output.origin != OutputOrigin::kLengths) return view;
  const Shape& shape = output.state.shape;
  if (output.is_clip()) {
    return clip_view(output, field.data, shape, rows_.plan.options().memory_format, rows);
  }
  view.shape.insert(view.shape.end(), shape.begin(), shape.end());
  if (is_picture(output) && rows_.plan.options().memory_format == MemoryFormat::kChannelsLast) {
    view.strides = {element_count(shape), 1, shape[2] * shape[0], shape[0]};
  }
  return view;
}

void BatchBuilder::close_gaps() {
  if (kept_) return;
  int64_t kept = 0;
  for (int64_t row = 0; row < rows(); ++row) {
    if (dropped_[row]) continue;
    for (size_t i = 0; i < rows_.fields.size() && kept != row; ++i) {
      OutputMemory& field = rows_.fields[i];
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
  for (OutputMemory& field : rows_.fields) {
    field.strings.resize(field.strings.empty() ? 0 : static_cast<size_t>(kept));
    field.items.resize(field.items.empty() ? 0 : static_cast<size_t>(kept));
  }
  kept_ = kept;
}

std::vector<int64_t> BatchBuilder::group_begins() const {
  std::vector<int64_t> out;
  if (rows_.plan.batch_steps().empty()) return out;
  int64_t kept = 0, last = -1;  // rows so far, and the group of the last one
  for (int64_t row = 0; row < rows(); ++row) {
    if (dropped_[row]) continue;
    if (row / rows_.plan.batch_group() != last) out.push_back(kept);
    last = row / rows_.plan.batch_group();
    ++kept;
  }
  return out;
}

Batch BatchBuilder::finish(size_t max_assembled) {
  close_gaps();
  if (assembled_.empty()) {
    bytes_to_assemble(max_assembled);
    assemble();
  }
  Batch batch{epoch_, index_, *kept_, {}};
  for (size_t i = 0; i < rows_.fields.size(); ++i) {
    const Output& output = rows_.plan.outputs()[i];
    OutputMemory& field = rows_.fields[i];
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
