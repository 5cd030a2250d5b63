// SPDX-License-Identifier: Apache-2.0
// The consumer's side of the engine: waiting for the next batch, failures by policy, and copies for
// a consumer that keeps every slot.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "headrace/base/clock.h"
#include "headrace/executor/engine.h"

namespace headrace {
namespace {

const ErrorCode kListsTooLarge{
    "HR0705", ErrorKind::kConfig, "batch of lists larger than the memory limit",
    "Fields that are delivered as lists have the size that the records have. One batch of them has "
    "to fit into half of what memory_limit leaves beside slots and threads. Use a smaller batch, a "
    "higher limit, or a step that makes the records smaller (Resize)."};

[[noreturn]] void throw_lists_too_large(const OpenBatch& batch, size_t share) {
  raise(kListsTooLarge,
        std::to_string(batch.done) + " of the " + std::to_string(batch.builder.rows()) +
            " records of batch " + std::to_string(batch.builder.index()) + " take " +
            std::to_string(batch.list_bytes >> 20) + " MiB, memory_limit leaves " +
            std::to_string(share >> 20) + " MiB for them",
        "raise memory_limit, or use a smaller batch_size");
}

}  // namespace

void Engine::consumer_arrives() {
  bool begins_to_keep = false;
  {
    MutexLock lock(mutex_);
    const int kept = rings_.most_out() - static_cast<int>(open_.size());
    begins_to_keep = kept >= 2 && !consumer_keeps_;
    consumer_keeps_ = kept >= 2;
    consumer_waits_ = true;
  }
  if (begins_to_keep) ThreadPool::workers().wake(options_.threads);
}

std::optional<Batch> Engine::next(const std::function<void()>& interrupted) {
  throw_if_forked();
  std::unique_ptr<OpenBatch> done = await(interrupted);
  if (!done) return std::nullopt;
  try {
    Batch batch = hand_over(*done);
    ThreadPool::workers().wake(options_.threads);
    return batch;
  } catch (...) {
    MutexLock lock(mutex_);
    running_ = false;  // it is not here any more, and has not arrived either
    throw;
  }
}

// The next batch with all its rows; null after the epoch's last.
std::unique_ptr<OpenBatch> Engine::await(const std::function<void()>& interrupted) {
  const double begin = now();
  bool warned = options_.patience_seconds <= 0;
  consumer_arrives();
  while (true) {
    OpenBatch* without_room = nullptr;  // until now: the first one
    {
      MutexLock lock(mutex_);
      const bool at_end = open_.empty() && next_open_ >= options_.task.layout.batches();
      if (at_end) {
        consumer_waits_ = false;
        return nullptr;
      }
      const auto ready = [&]() REQUIRES_LOCK(mutex_) {
        if (open_.empty()) return false;
        const OpenBatch& first = *open_.front();
        const bool complete = first.assembly != OpenBatch::Assembly::kUnderWay;
        return (first.filled() && complete && !awaits_assembly(first)) || first.too_large;
      };
      if (!ready()) without_room = begin_assembly();
      if (!ready() && !without_room && !broken_) progress_.wait_for(mutex_, kWaitSlice);
      if (ready() && open_.front()->too_large) throw_lists_too_large(*open_.front(), shares_.lists);
      if (ready()) {
        std::unique_ptr<OpenBatch> done = std::move(open_.front());
        open_.pop_front();
        stats_.wait_seconds += now() - begin;
        consumer_waits_ = false;
        return done;
      }
      if (broken_) {
        running_ = false;  // what the worker had at hand will never be done
        std::rethrow_exception(std::exchange(broken_, nullptr));
      }
    }
    if (without_room) {
      assemble(*without_room);
      continue;
    }
    if (interrupted) interrupted();
    if (!warned && now() - begin > options_.patience_seconds && options_.warn) {
      warned = true;
      options_.warn("no batch for " + std::to_string(int(now() - begin)) +
                    " s; the loader still waits for " + waits_for());
    }
  }
}

Batch Engine::hand_over(OpenBatch& open) {
  const BatchLayout& layout = options_.task.layout;
  {
    MutexLock lock(mutex_);
    delivered_records_ = layout.records_before(open.builder.index() + 1);
    stats_.warnings += open.warnings;
    stats_.remarks += open.remarks;
  }
  account_failures(open);
  if (open.assembly_error) std::rethrow_exception(open.assembly_error);
  Batch batch = open.builder.finish(shares_.assembled);
  {
    MutexLock lock(mutex_);
    list_bytes_ -= open.list_bytes;
    assembled_bytes_ -= open.assembled_bytes;
  }
  copy_slots_that_run_out(batch);
  MutexLock lock(mutex_);
  ++stats_.batches;
  stats_.foreseen += open.builder.came_true();
  stats_.records += batch.size;
  for (const BatchField& field : batch.fields) {
    if (!field.unfinished) continue;
    for (const auto& [why, rows] : field.unfinished->finished_before()) {
      stats_.finished_before[why] += rows;
    }
  }
  return batch;
}

void Engine::account_failures(OpenBatch& open) {
  if (open.failures.empty()) return;
  open.failures.sort([](const RowFailure& a, const RowFailure& b) { return a.row < b.row; });
  const auto place = [&](RowFailure& failure) {
    add_place(failure.error, *options_.task.source, failure.record);
  };
  // First what ends the run, so that a batch which is tried again is not counted twice.
  for (RowFailure& failure : open.failures) {
    if (!failure.fatal) continue;
    place(failure);
    throw Exception(std::move(failure.error));
  }
  for (RowFailure& failure : open.failures) {
    const int64_t position = open.builder.range().begin + failure.row;
    place(failure);
    bad_records_.add({open.builder.epoch(), position, failure.record,
                      options_.task.source->key(failure.record), std::move(failure.error),
                      std::move(failure.action)});
  }
  int64_t seen;
  {
    MutexLock lock(mutex_);
    // This rank's part, as the bad ones are.
    const BatchLayout& layout = options_.task.layout;
    seen = delivered_records_ * layout.rank_batch() / layout.global_batch();
  }
  bad_records_.check(seen);
}

void Engine::copy_slots_that_run_out(Batch& batch) {
  for (size_t output = 0; output < batch.fields.size(); ++output) {
    const SlotRing* ring = rings_.of(output);
    if (!ring) continue;
    BatchField& field = batch.fields[output];
    field.is_pinned = ring->pinned();
    int with_engine = ring->available();  // free ones, and those being filled
    {
      MutexLock lock(mutex_);
      with_engine += static_cast<int>(open_.size());
    }
    if (with_engine > 0) continue;
    std::shared_ptr<void> copy = make_pages(ring->bytes());
    size_t bytes = field.unfinished ? 0 : field.view.dense_bytes();
    if (field.unfinished) {
      for (const auto& piece : field.unfinished->slot_pieces()) bytes = piece.end();
    }
    std::memcpy(copy.get(), field.view.data, bytes);
    field.view.data = copy.get();
    field.lease = std::move(copy);
    field.is_pinned = false;
    bool first;
    {
      MutexLock lock(mutex_);
      first = stats_.copies++ == 0;
    }
    if (first && options_.warn) {
      options_.warn(
          "all " + std::to_string(ring->depth()) + " slots of \"" + field.name +
          "\" are held by the consumer: batches are copied from now on (drop batches before "
          "taking the next, or raise memory_limit)");
    }
  }
}

}  // namespace headrace
