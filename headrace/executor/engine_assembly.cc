// SPDX-License-Identifier: Apache-2.0
// Tensors of ragged fields, padded or packed, out of the values that a batch's rows have.
//
// Note [Who makes the tensors of ragged fields]
// The worker that writes the last row of a batch, so that the consumer finds it ready. Until a
// batch is handed over its tensors count against their share of memory_limit. They are made in the
// order of the batches, so what is made ahead never takes the room that an earlier one needs: the
// first one always finds all of it. One that finds no room stays as it is, until the consumer has
// taken those before it: then a worker that has time makes it, or the consumer, whoever comes
// first.
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/executor/engine.h"
#include "headrace/executor/ragged.h"

namespace headrace {
namespace {

using Assembly = OpenBatch::Assembly;

const ErrorCode kTooLargeTogether{
    "HR0706", ErrorKind::kConfig, "ragged batch larger than the memory limit",
    "ragged=\"pad\" makes one tensor that is as large as if every record were the longest, and one "
    "batch of such fields has to fit into its share of memory_limit. ragged=\"packed\" and \"list\" "
    "take what the records have. Otherwise a smaller batch, a higher limit, or a step that shortens "
    "the longest records."};

// What the output's memory is made of, once the batch is full.
RaggedValues values_of(const Output& output, std::span<const TensorView> items,
                       MemoryFormat format) {
  return {.items = items,
          .dtype = output.state.dtype,
          .promised = output.state.shape,
          .channels_last = is_picture(output.state.kind) && format == MemoryFormat::kChannelsLast};
}

}  // namespace

size_t BatchBuilder::bytes_to_assemble(size_t most) {
  close_gaps();
  size_t all = 0;
  for (size_t i = 0; i < fields_.size(); ++i) {
    const Output& output = plan_.outputs()[i];
    if (!output.is_assembled() || output.origin == OutputOrigin::kOffsets) continue;
    const bool is_mask = output.origin == OutputOrigin::kMask;
    const size_t of = is_mask ? static_cast<size_t>(output.companion) : i;
    const RaggedValues values =
        values_of(plan_.outputs()[of], fields_[of].items, plan_.options().memory_format);
    const int64_t multiple = plan_.options().pad_multiple;
    Shape shape = is_mask ? mask_shape(values, multiple) : padded_shape(values, multiple);
    if (output.ragged == Ragged::kPacked) {
      shape.erase(shape.begin());
      shape[0] = starts_of(values).back();
    }
    const size_t bytes = tensor_bytes(shape, output.state.dtype);
    if (__builtin_add_overflow(all, bytes, &all) || all > most) {
      raise(kTooLargeTogether,
            "batch " + std::to_string(index_) + ": \"" + output.name + "\" would be " +
                text_of(output.state.dtype, shape) + ", memory_limit leaves " +
                std::to_string(most >> 20) + " MiB for such fields",
            output.ragged == Ragged::kPad ? "ragged=\"packed\" or \"list\" does not pad; or raise "
                                            "memory_limit, or use a smaller batch_size"
                                          : "raise memory_limit, or use a smaller batch_size");
    }
  }
  return all;
}

size_t BatchBuilder::assemble() {
  assembled_.resize(fields_.size());
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (plan_.outputs()[i].is_assembled()) assembled_[i] = assembled(i);
  }
  size_t freed = 0;
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (!plan_.outputs()[i].is_assembled()) continue;
    for (const TensorView& item : fields_[i].items) freed += item.dense_bytes();
    fields_[i].items = {};
    fields_[i].item_memory = {};
  }
  return freed;
}

BatchField BatchBuilder::assembled(size_t i) const {
  const Output& output = plan_.outputs()[i];
  const bool is_own = output.origin == OutputOrigin::kField;
  const size_t of = is_own ? i : static_cast<size_t>(output.companion);
  const RaggedValues values =
      values_of(plan_.outputs()[of], fields_[of].items, plan_.options().memory_format);
  const int64_t multiple = plan_.options().pad_multiple;
  BatchField out;
  Assembled made;
  if (output.ragged == Ragged::kPacked) {
    out.starts = starts_of(values);
    out.is_offsets = !is_own;
    made = is_own ? pack(values) : tensor_of(out.starts);
  } else {
    made = is_own ? pad(values, multiple, output.padding) : mask_of(values, multiple);
  }
  out.view = std::move(made.view);
  out.lease = std::move(made.memory);
  return out;
}

bool Engine::awaits_assembly(const OpenBatch& batch) const {
  const auto ends_the_run = [](const RowFailure& failure) { return failure.fatal; };
  return assembles_ && batch.assembly == Assembly::kNone && batch.filled() && !batch.too_large &&
         std::ranges::none_of(batch.failures, ends_the_run);
}

OpenBatch* Engine::begin_assembly() {
  if (!assembles_ || !running_) return nullptr;
  for (const auto& batch : open_) {
    if (batch->assembly == Assembly::kDone) continue;
    const bool fits = assembled_bytes_ + batch->assembled_bytes <= shares_.assembled;
    if (!awaits_assembly(*batch) || !fits) return nullptr;
    batch->assembly = Assembly::kUnderWay;
    ++assembling_;
    return batch.get();
  }
  return nullptr;
}

void Engine::assemble(OpenBatch& batch) {
  const double begin = now();
  size_t bytes = 0, freed = 0;
  bool has_room = true;
  std::exception_ptr error;
  try {
    bytes = batch.builder.bytes_to_assemble(shares_.assembled);
    {
      MutexLock lock(mutex_);
      has_room = assembled_bytes_ + bytes <= shares_.assembled;
      if (has_room) assembled_bytes_ += bytes;
    }
    if (has_room) freed = batch.builder.assemble();
  } catch (...) {  // the consumer hears of it where the batch would have come
    error = std::current_exception();
  }
  MutexLock lock(mutex_);
  batch.assembled_bytes = bytes;
  batch.assembly_error = error;
  batch.assembly = has_room ? Assembly::kDone : Assembly::kNone;
  batch.list_bytes -= freed;
  list_bytes_ -= freed;
  --assembling_;
  stats_.stages.store += now() - begin;
  progress_.notify_all();
}

bool Engine::assemble_next() {
  OpenBatch* batch = nullptr;
  {
    MutexLock lock(mutex_);
    batch = begin_assembly();
  }
  if (batch) assemble(*batch);
  return batch != nullptr;
}

}  // namespace headrace
