// SPDX-License-Identifier: Apache-2.0
// Tensors of ragged fields, padded or packed, made from the values of a batch's rows.
#include <algorithm>
#include <utility>

#include "headrace/executor/batch/batch_builder.h"

namespace headrace {
namespace {

const ErrorCode kTooLargeTogether{
    "HR0706", ErrorKind::kConfig, "ragged batch larger than the memory limit",
    "ragged=\"pad\" makes one tensor as large as if every record were the longest, and one batch "
    "of such fields must fit into its part of memory_limit. ragged=\"packed\" and \"list\" use "
    "only what the records need. Otherwise use a smaller batch, a higher limit, or a transform "
    "that shortens the longest records."};

}  // namespace

RaggedForm ragged_form(const Plan& plan, const Output& output) {
  return {.dtype = output.state.dtype,
          .promised = output.state.shape,
          .packed = output.ragged == Ragged::kPacked,
          .multiple = plan.options().pad_multiple,
          .padding = output.padding,
          .channels_last = is_picture(output.state.kind) &&
                           plan.options().memory_format == MemoryFormat::kChannelsLast};
}

size_t BatchBuilder::bytes_to_assemble(size_t most) {
  close_gaps();
  size_t all = 0;
  for (size_t i = 0; i < rows_.fields.size(); ++i) {
    const Output& output = rows_.plan.outputs()[i];
    if (!output.is_assembled() || output.origin == OutputOrigin::kOffsets) continue;
    const bool is_mask = output.origin == OutputOrigin::kMask;
    const size_t of = is_mask ? static_cast<size_t>(output.companion) : i;
    const RaggedLayout layout(ragged_form(rows_.plan, rows_.plan.outputs()[of]),
                              rows_.fields[of].items);
    const Shape shape = is_mask ? layout.mask_shape() : layout.shape();
    const size_t bytes = tensor_bytes(shape, output.state.dtype);
    if (__builtin_add_overflow(all, bytes, &all) || all > most) {
      raise(kTooLargeTogether,
            "batch " + std::to_string(index_) + ": \"" + output.name + "\" would be " +
                text_of(output.state.dtype, shape) + ", but memory_limit leaves " +
                std::to_string(most >> 20) + " MiB for such fields",
            output.ragged == Ragged::kPad ? "ragged=\"packed\" or \"list\" does not pad; or raise "
                                            "memory_limit, or use a smaller batch_size"
                                          : "raise memory_limit, or use a smaller batch_size");
    }
  }
  return all;
}

size_t BatchBuilder::assemble() {
  assembled_.resize(rows_.fields.size());
  for (size_t i = 0; i < rows_.fields.size(); ++i) {
    if (rows_.plan.outputs()[i].is_assembled()) assembled_[i] = assembled(i);
  }
  size_t freed = 0;
  for (size_t i = 0; i < rows_.fields.size(); ++i) {
    OutputMemory& field = rows_.fields[i];
    if (!rows_.plan.outputs()[i].is_assembled()) continue;
    for (size_t row = 0; row < field.items.size(); ++row) {
      if (field.item_memory[row]) freed += field.items[row].dense_bytes();
    }
    if (field.places) freed += field.places->layout.bytes();
    field.items = {};
    field.item_memory = {};
    field.places.reset();
  }
  return freed;
}

bool BatchBuilder::is_in_place(const OutputMemory& field) const {
  if (!field.places || *kept_ != rows()) return false;
  return std::ranges::none_of(field.item_memory, [](const auto& own) { return own != nullptr; });
}

BatchField BatchBuilder::assembled(size_t i) {
  const Output& output = rows_.plan.outputs()[i];
  const bool is_own = output.origin == OutputOrigin::kField;
  const size_t of = is_own ? i : static_cast<size_t>(output.companion);
  OutputMemory& values = rows_.fields[of];
  const RaggedForm form = ragged_form(rows_.plan, rows_.plan.outputs()[of]);
  const auto memory = [&](size_t bytes) { return rows_.memory(i, bytes); };
  BatchField out;
  Assembled made;
  if (output.ragged == Ragged::kPacked) {
    out.starts = RaggedLayout(form, values.items).starts();
    out.is_offsets = !is_own;
    out.packed_axis =
        static_cast<size_t>(std::ranges::find(form.promised, -1) - form.promised.begin());
  }
  if (!is_own) {
    made = out.is_offsets ? tensor_of(out.starts, memory) : mask_of(form, values.items, memory);
  } else if (is_in_place(values)) {
    made = values.places->tensor;
    prediction_held_ = true;
  } else {
    made = headrace::assemble(form, values.items, memory);
  }
  out.view = std::move(made.view);
  out.lease = std::move(made.memory);
  return out;
}

}  // namespace headrace
