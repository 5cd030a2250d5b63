// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/engine.h"

#include <algorithm>
#include <cstring>

#include "headrace/base/clock.h"
#include "headrace/codecs/video/video_track.h"
#include "headrace/executor/batch/batch_builder.h"
#include "headrace/storage/read_deadline.h"

namespace headrace {
namespace {

MemoryShares shares_of(const EngineOptions& options) {
  const RowTask& task = options.task;
  return divide_memory(options.memory_limit,
                       {.plan = *task.plan,
                        .rows = task.layout.rank_batch(),
                        .left = task.left,
                        .threads = options.threads,
                        .lends = options.lends,
                        .reads_ahead = task.source->read_style() != ReadStyle::kMemory,
                        .reads_far = task.source->read_style() == ReadStyle::kLater});
}

// The videos of which rows take clips, and nothing else.
ClipChoice clips_of(const RowTask& task) {
  VideoTrack any;  // whether frames are known does not depend on it
  any.packets.push_back({.offset = 0, .size = 1, .key = true});
  any.frames.push_back(0);
  any.duration = 1;
  ClipChoice out{.fields = task.plan->by_range(),
                 .frames = [plan = task.plan, seed = task.seed](
                               size_t field, const VideoTrack& track, RowPosition row) {
                   return plan->clip_frames(static_cast<int>(field), track, seed,
                                            static_cast<uint64_t>(row.epoch), row.position);
                 }};
  for (size_t field = 0; field < out.fields.size(); ++field) {
    out.fields[field] = out.fields[field] && task.plan->inputs()[field].kind == FieldKind::kVideo &&
                        out.frames(field, any, {.position = 0});
  }
  return out;
}

std::function<void()> wake_workers(int threads) {
  return [threads] { ThreadPool::workers().wake(threads); };
}

}  // namespace

Engine::Engine(EngineOptions options, BadRecords& bad_records)
    : options_(std::move(options)),
      bad_records_(bad_records),
      order_(options_.task),
      record_bytes_(*options_.task.plan),
      shares_(shares_of(options_)),
      gate_(shares_.records, shares_.largest_record),
      read_ahead_(options_.task.source, options_.task.plan->wanted(), shares_.read_ahead,
                  shares_.largest_file, options_.task.plan->by_range(), options_.record_timeout,
                  clips_of(options_.task)),
      kept_(shares_.kept),
      rings_(*options_.task.plan, options_.task.left, options_.task.layout.rank_batch(),
             shares_.depth, options_.device, wake_workers(options_.threads)),
      batches_(
          options_.task, order_, rings_, shares_,
          {.threads = options_.threads,
           .python_workers = options_.task.plan->has_python_steps() ? options_.python_workers : 0,
           .to_device = options_.device != nullptr,
           .lends = options_.lends,
           .wake = wake_workers(options_.threads)}),
      python_steps_(options_.task, batches_, options_.python_workers,
                    wake_workers(options_.threads), stopping_),
      worker_(make_worker(stopping_)) {
  throw_if_forked();
  if (options_.on_demand) return;
  at_workers_.emplace(ThreadPool::workers(), *this);
  if (options_.task.plan->has_python_steps()) {
    at_python_threads_.emplace(python_steps_.threads(), python_steps_);
  }
}

Engine::~Engine() {
  if (options_.on_demand || forked_from_running_engine()) return;
  stop();
}

RecordWorker Engine::make_worker(const std::atomic<bool>& stop) {
  return {options_.task,
          order_,
          record_bytes_,
          {.record = shares_.largest_record, .listed = shares_.largest_listed},
          {gate_, read_ahead_, kept_, python_steps_, freed_, stop}};
}

void Engine::start(int64_t epoch, int64_t batch, const std::function<void()>& interrupted) {
  throw_if_forked();
  stop(interrupted);
  const bool goes_on = batches_.begin(epoch, batch);
  read_ahead_.start(order_.reads_from(epoch, batch, goes_on));
  batches_.go();  // last, so that a worker that is already awake finds the new order
  ThreadPool::workers().wake(options_.threads);
}

void Engine::stop(const std::function<void()>& interrupted) {
  if (forked_from_running_engine()) return;
  batches_.end();
  stopping_ = true;
  read_ahead_.abandon();
  ThreadPool::workers().wake(options_.threads);  // for the suspended runs
  while (!batches_.wait_idle(kWaitSlice)) {
    if (interrupted) interrupted();
  }
  batches_.clear();
  stopping_ = false;
  kept_.clear();
  read_ahead_.stop(interrupted);
}

// Errors of records are in the report. An exception, usually an allocation that failed outside any
// record, ends the run and is raised to the consumer.
bool Engine::work(Renderer& renderer) {
  std::unique_ptr<RecordRun> run;
  try {
    run = batches_.claim();
    if (!run) return batches_.assemble_next();
    const uint64_t freed = freed_;
    const StoppableReads stoppable(stopping_);
    worker_.prepare(renderer);
    RunOutcome stands = RunOutcome::kMore;
    while (stands == RunOutcome::kMore) {
      stands = worker_.advance(*run, renderer);
      batches_.note(*run);
    }
    if (stands == RunOutcome::kDone) {
      for (const MixGroup& group : batches_.settle_groups(*run)) worker_.mix(*run, group, renderer);
      batches_.note(*run);
    }
    const bool has_moved = run->report.settled > 0;
    batches_.finish(run, stands);
    if (stands == RunOutcome::kAtPython) python_steps_.add(run);
    renderer.trim(shares_.renderer_bytes);
    // If nothing progressed, there is no work until memory is freed. A thread that frees memory
    // then looks for work and finds the run; memory freed before the run was suspended is noticed
    // here.
    return stands != RunOutcome::kLacksMemory || has_moved || freed_ != freed;
  } catch (...) {
    batches_.abandon(std::move(run), std::current_exception());
    return false;
  }
}

std::optional<Batch> Engine::next(const std::function<void()>& interrupted) {
  throw_if_forked();
  const std::unique_ptr<OpenBatch> open =
      batches_.await({.interrupted = interrupted,
                      .patience_seconds = options_.warn ? options_.patience_seconds : 0,
                      .impatient = [this](double seconds) {
                        options_.warn("no batch for " + std::to_string(int(seconds)) +
                                      " s; the loader still waits for " +
                                      wait_text(batches_.doing(), options_.task));
                      }});
  if (!open) return std::nullopt;
  try {
    Batch batch = hand_over(*open);
    ThreadPool::workers().wake(options_.threads);
    return batch;
  } catch (...) {
    batches_.end();  // it has left the queue, but did not reach the consumer
    throw;
  }
}

Batch Engine::hand_over(OpenBatch& open) {
  const RowTask& task = options_.task;
  const BatchLayout& layout = task.layout;
  // Counts this rank's part of the epoch so far, like the bad records.
  const int64_t seen =
      layout.records_before(open.builder.index() + 1) * layout.rank_batch() / layout.global_batch();
  bad_records_.account(open.ledger.failures(), *task.source, open.builder.epoch(),
                       open.builder.range(), seen);
  if (open.ledger.assembly_error()) std::rethrow_exception(open.ledger.assembly_error());
  Batch batch = open.builder.finish(shares_.assembled);
  batches_.leave(open, batch);
  copy_scarce_slots(batch);
  return batch;
}

// A consumer that keeps every slot gets copies, because workers would have none left to fill.
void Engine::copy_scarce_slots(Batch& batch) {
  for (size_t output = 0; output < batch.fields.size(); ++output) {
    const SlotRing* const ring = rings_.of(output);
    if (!ring) continue;
    BatchField& field = batch.fields[output];
    field.is_pinned = ring->pinned();
    const int with_engine = ring->available() + batches_.open();  // free, or being filled
    batch.slots_left = std::min(batch.slots_left, with_engine);
    if (with_engine > 0) continue;
    std::shared_ptr<void> copy = make_pages(ring->bytes());
    const size_t bytes = field.unfinished ? field.unfinished->slot_end() : field.view.dense_bytes();
    std::memcpy(copy.get(), field.view.data, bytes);
    field.view.data = copy.get();
    field.lease = std::move(copy);
    field.is_pinned = false;
    if (copies_++ > 0 || !options_.warn) continue;
    options_.warn("all " + std::to_string(ring->depth()) + " slots of \"" + field.name +
                  "\" are held by the consumer: batches are copied from now on (drop batches "
                  "before taking the next, or raise memory_limit)");
  }
}

Batch Engine::make(int64_t epoch, int64_t batch) {
  static const std::atomic<bool> goes_on{false};  // whether or not the run is stopped
  const RowTask& task = options_.task;
  const BatchRange range = task.layout.range(batch);
  BatchBuilder builder(*task.plan, *task.source, epoch, batch, range,
                       [](size_t, size_t bytes) { return make_values(bytes); }, {});
  const RecordWorker worker = make_worker(goes_on);
  Renderer renderer;
  worker.prepare(renderer);
  RowsReport report = worker.fill({.epoch = epoch,
                                   .batch = batch,
                                   .position = range.begin,
                                   .count = static_cast<int>(builder.rows())},
                                  builder, renderer);
  for (RowFailure& failure : report.failures) {
    if (!failure.fatal) continue;
    add_place(failure.error, *task.source, failure.record);
    throw Exception(std::move(failure.error));
  }
  if (!task.plan->batch_steps().empty()) {
    Result<void> done = builder.run_batch_steps(0, builder.rows(), task.seed);
    if (!done) throw Exception(std::move(done.error()));
  }
  return builder.finish(shares_.assembled);
}

// --- Rows made elsewhere -------------------------------------------------------------------------

std::string why_not_lent(const RowTask& task) {
  for (const Output& output : task.plan->outputs()) {
    if (output.as_list) {
      return "\"" + output.name + "\" has values of different lengths, which are not sent";
    }
  }
  for (size_t i = 0; i < task.plan->outputs().size(); ++i) {
    if (task.left.finishes(i)) return "a device finishes \"" + task.plan->outputs()[i].name + '"';
  }
  return {};
}

// Made as a batch of only these rows, since draws and orders depend on positions, and groups are
// complete. In groups if no step is in Python, otherwise row by row.
RowsResult Engine::make_rows(const RowsRequest& wanted, const BatchRows::Memory& memory) {
  static const std::atomic<bool> goes_on{false};  // whether or not the run is stopped
  const RowTask& task = options_.task;
  const BatchRange all = task.layout.range(wanted.batch);
  const int64_t begin = all.begin + wanted.first;
  const BatchRange range{begin, begin + wanted.count, all.valid_end};
  BatchBuilder builder(*task.plan, *task.source, wanted.epoch, wanted.batch, range, memory, {});
  const RecordWorker worker = make_worker(goes_on);
  Renderer renderer;
  worker.prepare(renderer);
  const Rows rows{
      .epoch = wanted.epoch, .batch = wanted.batch, .position = begin, .count = wanted.count};
  RowsReport report;
  if (task.plan->has_python_steps()) {
    report = worker.fill(rows, builder, renderer);
  } else {
    RecordRun run;
    run.rows = rows;
    run.to = &builder;
    while (worker.advance(run, renderer) == RunOutcome::kMore) continue;
    report = std::move(run.report);
  }
  RowsResult made{.failures = std::move(report.failures),
                  .warnings = report.warnings,
                  .remarks = report.remarks,
                  .stages = report.stages,
                  .seconds = report.seconds};
  for (RowFailure& failure : made.failures) {
    if (!may_succeed_elsewhere(failure)) continue;
    add_place(failure.error, *task.source, failure.record);
    throw Exception(std::move(failure.error));
  }
  const bool fatal = std::ranges::any_of(made.failures, &RowFailure::fatal);
  if (!fatal && !task.plan->batch_steps().empty()) {
    Result<void> done = builder.run_batch_steps(0, builder.rows(), task.seed);
    if (!done) {
      made.failures.push_back({.row = 0,
                               .record = order_.index_at(wanted.epoch, begin),
                               .error = std::move(done.error()),
                               .fatal = true});
    }
  }
  for (int row = 0; row < wanted.count; ++row) {
    if (builder.dropped()[size_t(row)]) made.dropped.push_back(row);
  }
  return made;
}

// This engine does not fetch the records of lent rows.
std::optional<LentRows> Engine::rows_ahead(int most, double patience_seconds) {
  std::optional<LentRows> rows = batches_.lend(most, patience_seconds);
  const int64_t reads = order_.reads_a_row();
  if (rows) read_ahead_.skip(rows->sequence * reads, rows->count * reads);
  return rows;
}

EngineStats Engine::stats() const {
  EngineStats stats = batches_.stats();
  const size_t fixed = stats.memory_used + rings_.mapped_bytes() + shares_.threads +
                       read_ahead_.held_bytes() + kept_.held_bytes();
  stats.memory_used = fixed + gate_.used();
  stats.memory_peak = fixed + gate_.peak();
  stats.memory_wait_seconds = gate_.waited_seconds();
  stats.copies = copies_;
  stats.reads = read_ahead_.counts();
  return stats;
}

}  // namespace headrace
