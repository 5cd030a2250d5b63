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
#include <algorithm>
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/executor/engine.h"

namespace headrace {
namespace {

using Assembly = OpenBatch::Assembly;

}  // namespace

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
