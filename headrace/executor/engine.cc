// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/engine.h"

#include <algorithm>

#include "headrace/base/clock.h"

namespace headrace {
namespace {

// A run should last about this long: short enough to balance the end of an epoch, long enough that
// claiming costs nothing.
constexpr double kRunSeconds = 4e-3;
constexpr int kLongestRun = 256;
constexpr size_t kSpareRuns = 256;  // whose memory is used again
// Near the end of a batch the rest is shared out, but not in pieces so small that a decoder of
// several lanes has nothing to do side by side.
constexpr int kLeastShare = 8;
// Batches of so many bytes, with so many rows for each thread, do with two buffers where they can.
constexpr size_t kLargeBatch = 16 << 20;
constexpr int kManyRows = 32;

}  // namespace

Engine::Engine(EngineOptions options, BadRecords& bad_records)
    : options_(std::move(options)),
      has_python_steps_(options_.task.plan->has_python_steps()),
      has_lists_(options_.task.plan->delivers_lists()),
      assembles_(options_.task.plan->assembles()),
      order_(options_.task),
      record_bytes_(*options_.task.plan),
      bad_records_(bad_records),
      shares_(with_kept_frames(
          with_near_partners(
              divide_memory(options_.memory_limit,
                            batch_bytes(*options_.task.plan, options_.task.layout.rank_batch(),
                                        options_.task.left),
                            options_.threads,
                            options_.task.source->read_style() != ReadStyle::kMemory, has_lists_,
                            batch_bytes(*options_.task.plan, options_.task.layout.rank_batch())),
              *options_.task.plan),
          *options_.task.plan, options_.threads)),
      gate_(shares_.records, shares_.largest_record),
      read_ahead_(options_.task.source, options_.task.plan->wanted(), shares_.read_ahead,
                  shares_.largest_file, options_.task.plan->by_range()),
      kept_(shares_.kept),
      python_side_(*this),
      rings_(*options_.task.plan, options_.task.left, options_.task.layout.rank_batch(),
             shares_.depth, options_.device,
             [threads = options_.threads] { ThreadPool::workers().wake(threads); }),
      on_device_{.left = options_.task.left,
                 .finished = [this](size_t output, size_t) { return rings_.take_finished(output); },
                 .decoding = options_.task.decoding},
      worker_(worker_until(stopping_)),
      spares_memory_(shares_.slots / shares_.depth >= kLargeBatch &&
                     options_.task.layout.rank_batch() >= kManyRows * options_.threads) {
  throw_if_forked();
  if (assembles_) {  // while a tensor is made, the values are there, too
    shares_.lists /= 2;
    shares_.assembled = shares_.lists;
  }
  spare_.reserve(kSpareRuns);
  at_workers_.emplace(ThreadPool::workers(), *this);
  if (has_python_steps_) at_python_threads_.emplace(python_threads(), python_side_);
}

Engine::~Engine() {
  if (forked_from_running_engine()) return;
  stop();
  at_workers_.reset();
  at_python_threads_.reset();
}

RecordWorker Engine::worker_until(const std::atomic<bool>& stop) {
  return {options_.task,
          order_,
          record_bytes_,
          {shares_.largest_record, shares_.largest_listed},
          {gate_, read_ahead_, kept_, python_side_, freed_, stop}};
}

void Engine::start(int64_t epoch, int64_t batch, const std::function<void()>& interrupted) {
  throw_if_forked();
  stop(interrupted);
  bool goes_on = false;
  {
    MutexLock lock(mutex_);
    broken_ = nullptr;
    goes_on = epoch == epoch_ + 1 && batch == 0;
    epoch_ = epoch;
    next_open_ = batch;
    next_sequence_ = 0;
    foreseen_.reset();
    delivered_records_ = options_.task.layout.records_before(batch);
  }
  read_ahead_.start(order_.reads_from(epoch, batch, goes_on));
  {
    MutexLock lock(mutex_);
    running_ = true;  // last: a worker that others have woken must find the new order
  }
  ThreadPool::workers().wake(options_.threads);
}

void Engine::stop(const std::function<void()>& interrupted) {
  if (forked_from_running_engine()) return;
  {
    MutexLock lock(mutex_);
    running_ = false;
    stopping_ = true;
  }
  ThreadPool::workers().wake(options_.threads);  // for the runs that were put aside
  while (true) {
    {
      MutexLock lock(mutex_);
      const bool at_work = !active_.empty() || assembling_ > 0;
      if (at_work) progress_.wait_for(mutex_, kWaitSlice);
      if (active_.empty() && assembling_ == 0) break;
    }
    if (interrupted) interrupted();
  }
  {
    MutexLock lock(mutex_);
    open_.clear();
    list_bytes_ = assembled_bytes_ = 0;
    stopping_ = false;
  }
  kept_.clear();
  read_ahead_.stop(interrupted);
}

bool Engine::delivers() const {
  MutexLock lock(mutex_);
  return running_;
}

// Lists of values have no slots, so what limits them is their bytes: beyond the share only the
// batch that the consumer waits for goes on. Claims are in order, so that is the only open one.
bool Engine::may_grow_lists() const {
  if (list_bytes_ < shares_.lists || !has_lists_ || open_.empty()) return true;
  const OpenBatch& batch = *open_.front();
  return open_.size() == 1 && !batch.too_large && batch.claimed < batch.builder.rows();
}

std::unique_ptr<RecordRun> Engine::claim() {
  MutexLock lock(mutex_);
  if (!continued_.empty()) {
    auto run = std::move(continued_.front());
    continued_.pop_front();
    return run;
  }
  // Runs that lack memory come before new ones, which would take it from them.
  if (!parked_.empty()) {
    auto run = std::move(parked_.front());
    parked_.pop_front();
    return run;
  }
  if (!running_ || !may_grow_lists()) return nullptr;
  if (open_.empty() || open_.back()->claimed == open_.back()->builder.rows()) {
    if (!open_batch()) return nullptr;
  }
  OpenBatch& batch = *open_.back();
  const int left = static_cast<int>(batch.builder.rows()) - batch.claimed;
  const int fair = std::max<int>(1, (left + options_.threads - 1) / options_.threads);
  const int long_enough =
      static_cast<int>(std::clamp(kRunSeconds / record_seconds_, 1.0, double{kLongestRun}));
  std::unique_ptr<RecordRun> run;
  if (spare_.empty()) {
    run = std::make_unique<RecordRun>();
  } else {
    run = std::move(spare_.back());
    spare_.pop_back();
  }
  run->begun = false;
  run->to = &batch.builder;
  run->of = &batch;
  run->rows = {.epoch = batch.builder.epoch(),
               .batch = batch.builder.index(),
               .position = batch.builder.range().begin,
               .sequence = batch.first_sequence,
               .first = batch.claimed,
               .count = std::min({left, std::max(fair, kLeastShare), long_enough})};
  if (options_.python_workers > 0 &&
      has_python_steps_) {  // a run crosses as a whole, to one of them
    const int batch = static_cast<int>(options_.task.layout.rank_batch());
    run->rows.count = std::min(run->rows.count, std::max(1, batch / (2 * options_.python_workers)));
  }
  active_.push_back(run.get());
  batch.claimed += run->rows.count;
  return run;
}

// Errors of records are theirs. What is left, memory that is refused while nothing of a record is
// at hand above all, ends the run, and is for the consumer to hear.
bool Engine::work(Renderer& renderer) {
  std::unique_ptr<RecordRun> run;
  try {
    return work_on(run, renderer);
  } catch (...) {
    break_off(std::move(run));
    return false;
  }
}

void Engine::break_off(std::unique_ptr<RecordRun> run) noexcept {
  if (run) worker_.give_back(*run);
  MutexLock lock(mutex_);
  if (!broken_) broken_ = std::current_exception();
  std::erase(active_, run.get());
  progress_.notify_all();
}

bool Engine::work_on(std::unique_ptr<RecordRun>& run, Renderer& renderer) {
  run = claim();
  if (!run) return assemble_next();
  const uint64_t freed = freed_;
  worker_.prepare(renderer);
  Stands stands;
  do {
    stands = worker_.advance(*run, renderer);
    note(*run);
  } while (stands == Stands::kMore);
  if (stands == Stands::kDone) {
    for (const MixGroup& group : settled_groups(*run)) worker_.mix(*run, group, renderer);
    note(*run);
  }
  const bool moved = run->report.settled > 0;
  finish_run(run, stands);
  renderer.trim(shares_.renderer_bytes);
  // Where nothing moved, there is no work until memory is freed. Whoever frees some asks for work
  // afterwards and finds the run; what was freed before it was put aside shows here.
  return stands != Stands::kLacksMemory || moved || freed_ != freed;
}

// Takes what others should know at once: the memory of lists, and rows that failed. Nothing here
// is refused memory, so what was given up is reported.
void Engine::note(RecordRun& run) {
  RowsReport& report = run.report;
  if (report.warnings == 0 && report.list_bytes == 0 && report.failures.empty()) return;
  MutexLock lock(mutex_);
  OpenBatch& batch = *run.of;
  batch.warnings += std::exchange(report.warnings, 0);
  batch.failures.splice(batch.failures.end(), report.failures);
  const size_t bytes = std::exchange(report.list_bytes, 0);
  batch.list_bytes += bytes;
  list_bytes_ += bytes;
  if (bytes == 0 || !has_lists_) return;
  if (batch.list_bytes - batch.foreseen_bytes <= shares_.lists) return;
  batch.too_large = true;
  progress_.notify_all();
}

// The groups of batch steps whose last rows the run had. REQUIRES: all its rows are settled, and
// this was not called for them before.
std::vector<MixGroup> Engine::settled_groups(const RecordRun& run) {
  std::vector<MixGroup> complete;
  if (options_.task.plan->batch_steps().empty()) return complete;
  const int64_t group = options_.task.plan->batch_group();
  const int64_t end = run.rows.first + run.rows.count;
  MutexLock lock(mutex_);  // which also shows what others have written into their rows
  OpenBatch& batch = *run.of;
  for (int64_t row = run.rows.first; row < end;) {
    const int64_t number = row / group, next = std::min((number + 1) * group, end);
    batch.unsettled[number] -= static_cast<int>(next - row);
    row = next;
    if (batch.unsettled[number] > 0) continue;
    const int64_t first = number * group;
    complete.push_back({first, std::min(group, batch.builder.rows() - first)});
  }
  return complete;
}

void Engine::finish_run(std::unique_ptr<RecordRun>& run, Stands stands) {
  const RowsReport report = std::exchange(run->report, {});
  bool batch_done = false, consumer_waits = true;
  OpenBatch* filled = nullptr;
  {
    MutexLock lock(mutex_);
    run->activity.kind = RunActivity::Kind::kWaits;
    stats_.stages += report.stages;
    if (report.settled > 0) {
      record_seconds_ += (report.seconds / report.settled - record_seconds_) / 4;
    }
    OpenBatch& batch = *run->of;
    batch.done += report.settled;
    batch.remarks += report.remarks;
    batch_done = batch.filled();
    if (batch_done) filled = begin_assembly();
    consumer_waits = consumer_waits_;
    if (stands == Stands::kAtPython) {
      at_python_.push_back(std::move(run));
    } else if (stands == Stands::kLacksMemory) {
      parked_.push_back(std::move(run));
    } else {
      std::erase(active_, run.get());
      if (spare_.size() < spare_.capacity()) spare_.push_back(std::move(run));
      if (active_.empty() || batch_done) progress_.notify_all();
    }
  }
  if (stands == Stands::kAtPython) python_threads().wake(python_side_.max_workers());
  if (filled) assemble(*filled);
  if (batch_done && !consumer_waits)
    ThreadPool::workers().wake(options_.threads);  // a third buffer may be used
}

Batch Engine::make(int64_t epoch, int64_t batch) {
  static const std::atomic<bool> goes_on{false};  // whether or not the run is stopped
  const RowTask& task = options_.task;
  const BatchRange range = task.layout.range(batch);
  BatchBuilder builder(*task.plan, *task.source, epoch, batch, range, task.layout.positions(),
                       [](size_t, size_t bytes) { return make_pages(bytes); }, {});
  const RecordWorker worker = worker_until(goes_on);
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

EngineStats Engine::stats() const {
  MutexLock lock(mutex_);
  EngineStats stats = stats_;
  const size_t fixed = rings_.mapped_bytes() + shares_.threads + list_bytes_ + assembled_bytes_ +
                       read_ahead_.held_bytes() + kept_.held_bytes();
  stats.memory_used = fixed + gate_.used();
  stats.memory_peak = fixed + gate_.peak();
  stats.memory_wait_seconds = gate_.waited_seconds();
  return stats;
}

}  // namespace headrace
