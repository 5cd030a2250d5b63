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

StageSeconds operator-(const StageSeconds& a, const StageSeconds& b) {
  return {a.read - b.read,         a.entropy - b.entropy, a.transform - b.transform,
          a.resample - b.resample, a.store - b.store,     a.python - b.python};
}

void add(StageSeconds& to, const StageSeconds& more) {
  to.read += more.read;
  to.entropy += more.entropy;
  to.transform += more.transform;
  to.resample += more.resample;
  to.store += more.store;
  to.python += more.python;
}

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
  run->batch = &batch;
  run->first_row = batch.claimed;
  run->rows = std::min({left, std::max(fair, kLeastShare), long_enough});
  if (options_.python_workers > 0 &&
      has_python_steps_) {  // a run crosses as a whole, to one of them
    const int batch = static_cast<int>(options_.task.layout.rank_batch());
    run->rows = std::min(run->rows, std::max(1, batch / (2 * options_.python_workers)));
  }
  active_.push_back(run.get());
  batch.claimed += run->rows;
  return run;
}

// Tells the source what all will be read some batches later, where the sampler knows such
// stretches.
void Engine::announce(const OpenBatch& batch) const {
  for (const RecordRange& range :
       order_.begun_by(batch.builder.epoch(), batch.builder.index(), batch.first_sequence == 0)) {
    options_.task.source->will_read(range.begin, range.end);
  }
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
  if (run) {
    for (InFlight& flight : run->flight) give_back(flight);
  }
  MutexLock lock(mutex_);
  if (!broken_) broken_ = std::current_exception();
  std::erase(active_, run.get());
  progress_.notify_all();
}

bool Engine::work_on(std::unique_ptr<RecordRun>& run, Renderer& renderer) {
  run = claim();
  if (!run) return assemble_next();
  renderer.allow_values(shares_.largest_record);
  renderer.allow_pictures(std::max(shares_.largest_record, record_bytes_.largest_image()));
  if (run->first_row == 0 && !run->begun) announce(*run->batch);
  const StageSeconds before = renderer.seconds();
  const uint64_t freed = freed_;
  const double begin = now();
  const int settled = process(*run, renderer);
  const bool has_batch_steps = !options_.task.plan->batch_steps().empty();
  if (has_batch_steps && is_settled(*run)) finish_groups(*run, renderer);
  const double seconds = now() - begin;
  const bool parked =
      finish_run(run, settled, seconds, renderer.seconds() - before, renderer.take_remarks());
  renderer.trim(shares_.renderer_bytes);
  // Where nothing moved, there is no work until memory is freed. Whoever frees some asks for work
  // afterwards and finds the run; what was freed before it was put aside shows here.
  return !parked || settled > 0 || freed_ != freed;
}

// Returns whether the run was put aside for want of memory.
bool Engine::finish_run(std::unique_ptr<RecordRun>& run, int settled, double seconds,
                        const StageSeconds& stages, const PictureRemarks& remarks) {
  using State = InFlight::State;
  const auto any = [&](auto&& is) REQUIRES_LOCK(mutex_) {
    const auto begin = run->flight.begin();
    return has_python_steps_ && std::any_of(begin, begin + run->rows, is);
  };
  bool to_python = false, parked = false, batch_done = false, consumer_waits = true;
  OpenBatch* filled = nullptr;
  {
    MutexLock lock(mutex_);
    run->activity->kind = RunActivity::Kind::kWaits;
    add(stats_.stages, stages);
    if (settled > 0) record_seconds_ += (seconds / settled - record_seconds_) / 4;
    OpenBatch& batch = *run->batch;
    batch.done += settled;
    batch.remarks += remarks;
    batch_done = batch.filled();
    if (batch_done) filled = begin_assembly();
    consumer_waits = consumer_waits_;
    to_python = any([](const InFlight& flight) { return flight.state == State::kAtPython; });
    parked = !to_python && any([](const InFlight& flight) { return !flight.settled(); });
    if (to_python) {
      at_python_.push_back(std::move(run));
    } else if (parked) {
      parked_.push_back(std::move(run));
    } else {
      std::erase(active_, run.get());
      if (spare_.size() < spare_.capacity()) spare_.push_back(std::move(run));
      if (active_.empty() || batch_done) progress_.notify_all();
    }
  }
  if (to_python) python_threads().wake(python_side_.max_workers());
  if (filled) assemble(*filled);
  if (batch_done && !consumer_waits)
    ThreadPool::workers().wake(options_.threads);  // a third buffer may be used
  return parked;
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
