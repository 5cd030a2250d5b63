// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace headrace {
namespace {

// Fields of fewer bytes a batch get memory of their own for each batch: keeping labels never keeps
// a slot.
constexpr size_t kPooledBytes = 64 << 10;
// A run should last about this long: short enough to balance the end of an epoch, long enough that
// claiming costs nothing.
constexpr double kRunSeconds = 4e-3;
constexpr int kLongestRun = 256;
constexpr auto kSlice = std::chrono::milliseconds(50);
constexpr double kHangSeconds = 60;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool any_host_step(const Plan& plan) {
  return std::any_of(plan.steps().begin(), plan.steps().end(),
                     [](const Step& step) { return step.kind == Step::Kind::kHost; });
}

StageSeconds operator-(const StageSeconds& a, const StageSeconds& b) {
  return {a.read - b.read,         a.entropy - b.entropy, a.transform - b.transform,
          a.resample - b.resample, a.store - b.store,     a.host - b.host};
}

void add(StageSeconds& to, const StageSeconds& more) {
  to.read += more.read;
  to.entropy += more.entropy;
  to.transform += more.transform;
  to.resample += more.resample;
  to.store += more.store;
  to.host += more.host;
}

}  // namespace

size_t batch_bytes(const Plan& plan, int64_t rows) {
  size_t bytes = 0;
  for (const Output& output : plan.outputs()) bytes += output.bytes_per_record * size_t(rows);
  return bytes;
}

Engine::Engine(EngineOptions options, BadRecords& bad_records)
    : options_(std::move(options)),
      has_host_steps_(any_host_step(*options_.plan)),
      bad_records_(bad_records),
      shares_(divide_memory(options_.memory_limit,
                            batch_bytes(*options_.plan, options_.layout.rank_batch()),
                            options_.threads, options_.source->read_style() != ReadStyle::kMemory)),
      gate_(shares_.records),
      read_ahead_(options_.source, options_.plan->wanted(), shares_.read_ahead),
      host_side_(*this) {
  throw_if_forked();
  for (const Output& output : options_.plan->outputs()) {
    const size_t bytes = output.bytes_per_record * size_t(options_.layout.rank_batch());
    rings_.push_back(output.as_list || bytes < kPooledBytes
                         ? nullptr
                         : std::make_shared<SlotRing>(
                               bytes, shares_.depth, [] { ThreadPool::workers().wake(); }));
  }
  ThreadPool::workers().add(*this);
  if (has_host_steps_) ThreadPool::host().add(host_side_);
}

Engine::~Engine() {
  if (forked_from_running_engine()) return;
  stop();
  ThreadPool::workers().remove(*this);
  if (has_host_steps_) ThreadPool::host().remove(host_side_);
  for (auto& ring : rings_) {
    if (ring) ring->detach();
  }
}

void Engine::start(int64_t epoch, int64_t batch) {
  throw_if_forked();
  stop();
  {
    MutexLock lock(mutex_);
    epoch_ = epoch;
    next_open_ = batch;
    next_sequence_ = 0;
    delivered_records_ =
        std::min(batch * options_.layout.global_batch(), options_.layout.positions());
    running_ = true;
  }
  const BatchLayout& layout = options_.layout;
  int64_t rows = 0;
  if (batch < layout.batches()) {
    rows = (layout.batches() - 1 - batch) * layout.rank_batch() +
           layout.range(layout.batches() - 1).size();
  }
  read_ahead_.start(
      [this, epoch, batch](int64_t sequence) {
        const int64_t per_batch = options_.layout.rank_batch();
        const BatchRange range = options_.layout.range(batch + sequence / per_batch);
        return index_at(epoch, range.begin + sequence % per_batch);
      },
      rows);
  ThreadPool::workers().wake();
}

void Engine::stop() {
  if (forked_from_running_engine()) return;
  {
    MutexLock lock(mutex_);
    running_ = false;
    while (active_ > 0) progress_.wait(mutex_);
    open_.clear();
  }
  read_ahead_.stop();
}

int64_t Engine::index_at(int64_t epoch, int64_t position) const {
  // Padding repeats the epoch's first records.
  return options_.sampler->index(options_.seed, static_cast<uint64_t>(epoch),
                                 position % options_.layout.positions());
}

bool Engine::open_batch() {
  if (next_open_ >= options_.layout.batches()) return false;
  std::vector<int> pooled;
  for (size_t i = 0; i < rings_.size(); ++i) {
    if (!rings_[i]) continue;
    if (rings_[i]->available() == 0) return false;
    pooled.push_back(static_cast<int>(i));
  }
  // Lists and small fields have no ring; batches ahead of the consumer are bounded all the same.
  if (static_cast<int>(open_.size()) >= shares_.depth) return false;
  const BatchRange range = options_.layout.range(next_open_);
  auto memory = [this](size_t output, size_t bytes) {
    return rings_[output] ? rings_[output]->take() : make_pages(bytes);
  };
  open_.push_back(std::make_unique<OpenBatch>(
      OpenBatch{.builder = BatchBuilder(*options_.plan, *options_.source, epoch_, next_open_, range,
                                        options_.layout.positions(), memory),
                .first_sequence = next_sequence_,
                .pooled = std::move(pooled)}));
  ++next_open_;
  next_sequence_ += range.size();
  return true;
}

std::unique_ptr<RecordRun> Engine::claim() {
  MutexLock lock(mutex_);
  if (!continued_.empty()) {
    auto run = std::move(continued_.front());
    continued_.pop_front();
    return run;
  }
  if (!running_) return nullptr;
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
  run->batch = &batch;
  run->first_row = batch.claimed;
  run->rows = std::min({left, fair, long_enough});
  batch.claimed += run->rows;
  ++active_;
  return run;
}

bool Engine::work(Renderer& renderer) {
  std::unique_ptr<RecordRun> run = claim();
  if (!run) return false;
  const StageSeconds before = renderer.seconds();
  const double begin = now();
  const int settled = process(*run, renderer);
  const double seconds = now() - begin;
  finish_run(std::move(run), settled, seconds, renderer.seconds() - before);
  renderer.trim(shares_.threads / static_cast<size_t>(options_.threads));
  return true;
}

void Engine::finish_run(std::unique_ptr<RecordRun> run, int settled, double seconds,
                        const StageSeconds& stages) {
  bool to_host = false, batch_done = false;
  {
    MutexLock lock(mutex_);
    add(stats_.stages, stages);
    if (settled > 0) record_seconds_ += (seconds / settled - record_seconds_) / 4;
    OpenBatch& batch = *run->batch;
    batch.done += settled;
    batch_done = batch.done == batch.builder.rows();
    to_host =
        std::any_of(run->flight.begin(), run->flight.begin() + (has_host_steps_ ? run->rows : 0),
                    [](const InFlight& flight) { return flight.at_host; });
    if (to_host) {
      at_host_.push_back(std::move(run));
    } else {
      spare_.push_back(std::move(run));
      --active_;
      if (active_ == 0 || batch_done) progress_.notify_all();
    }
  }
  if (to_host) ThreadPool::host().wake();
}

std::optional<Batch> Engine::next(const std::function<void()>& interrupted) {
  throw_if_forked();
  const double begin = now();
  bool warned = false;
  std::unique_ptr<OpenBatch> done;
  while (!done) {
    {
      MutexLock lock(mutex_);
      const bool at_end = open_.empty() && next_open_ >= options_.layout.batches();
      if (at_end) return std::nullopt;
      const auto ready = [&]() REQUIRES_LOCK(mutex_) {
        return !open_.empty() && open_.front()->done == open_.front()->builder.rows();
      };
      if (!ready()) progress_.wait_for(mutex_, kSlice);
      if (ready()) {
        done = std::move(open_.front());
        open_.pop_front();
        stats_.wait_seconds += now() - begin;
        break;
      }
    }
    if (interrupted) interrupted();
    if (!warned && now() - begin > kHangSeconds && options_.warn) {
      options_.warn("no batch for " + std::to_string(int(kHangSeconds)) +
                    " s; the loader still waits for " +
                    (has_host_steps_ ? "a Python step" : "reads or decoding"));
      warned = true;
    }
  }
  Batch batch = hand_over(*done);
  ThreadPool::workers().wake();
  return batch;
}

Batch Engine::hand_over(OpenBatch& open) {
  const BatchLayout& layout = options_.layout;
  {
    MutexLock lock(mutex_);
    const int64_t end = (open.builder.index() + 1) * layout.global_batch();
    delivered_records_ = std::min(end, layout.positions());
    stats_.warnings += open.warnings;
  }
  account_failures(open);
  Batch batch = open.builder.finish();
  copy_slots_that_run_out(batch, open);
  MutexLock lock(mutex_);
  ++stats_.batches;
  stats_.records += batch.size;
  return batch;
}

void Engine::account_failures(OpenBatch& open) {
  if (open.failures.empty()) return;
  std::sort(open.failures.begin(), open.failures.end(),
            [](const RowFailure& a, const RowFailure& b) { return a.row < b.row; });
  for (RowFailure& failure : open.failures) {
    const int64_t position = open.builder.range().begin + failure.row;
    const std::string key = options_.source->key(failure.record);
    failure.error.where.record = failure.record;
    if (failure.error.where.file.empty()) failure.error.where.file = key;
    if (failure.fatal) throw Exception(std::move(failure.error));
    bad_records_.add({open.builder.epoch(), position, failure.record, key, std::move(failure.error),
                      std::move(failure.action)});
  }
  int64_t seen;
  {
    MutexLock lock(mutex_);
    seen = delivered_records_;
  }
  bad_records_.check(seen);
}

void Engine::copy_slots_that_run_out(Batch& batch, const OpenBatch& open) {
  for (int output : open.pooled) {
    SlotRing& ring = *rings_[output];
    int with_engine = ring.available();  // free ones, and those being filled
    {
      MutexLock lock(mutex_);
      with_engine += static_cast<int>(open_.size());
    }
    if (with_engine > 0) continue;
    BatchField& field = batch.fields[output];
    std::shared_ptr<void> copy = make_pages(ring.bytes());
    std::memcpy(copy.get(), field.view.data, field.view.dense_bytes());
    field.view.data = copy.get();
    field.lease = std::move(copy);
    bool first;
    {
      MutexLock lock(mutex_);
      first = stats_.copies++ == 0;
    }
    if (first && options_.warn) {
      options_.warn(
          "all " + std::to_string(ring.depth()) + " slots of \"" + field.name +
          "\" are held by the consumer: batches are copied from now on (drop batches before "
          "taking the next, or raise memory_limit)");
    }
  }
}

Batch Engine::make(int64_t epoch, int64_t batch) {
  OpenBatch open{.builder = BatchBuilder(*options_.plan, *options_.source, epoch, batch,
                                         options_.layout.range(batch), options_.layout.positions(),
                                         [](size_t, size_t bytes) { return make_pages(bytes); })};
  Renderer renderer;
  for (int row = 0; row < open.builder.rows(); ++row) {
    const int64_t index = index_at(epoch, open.builder.range().begin + row);
    Result<void> made = make_row(open, row, index, renderer);
    if (made) continue;
    RowFailure failure{.row = row, .record = index, .error = std::move(made.error())};
    if (!is_bad_record(failure.error) || options_.on_error == OnError::kRaise) {
      failure.fatal = true;
    } else if (options_.on_error == OnError::kSkip) {
      open.builder.drop(row);
    } else {
      failure.fatal = !substitute(open, row, failure, renderer);
    }
    if (!failure.fatal) continue;
    failure.error.where.record = index;
    if (failure.error.where.file.empty()) failure.error.where.file = options_.source->key(index);
    throw Exception(std::move(failure.error));
  }
  return open.builder.finish();
}

EngineStats Engine::stats() const {
  MutexLock lock(mutex_);
  EngineStats stats = stats_;
  for (const auto& ring : rings_) stats.memory_used += ring ? ring->mapped_bytes() : 0;
  const size_t fixed = stats.memory_used + shares_.threads + read_ahead_.held_bytes();
  stats.memory_used = fixed + gate_.used();
  stats.memory_peak = fixed + gate_.peak();
  return stats;
}

}  // namespace headrace
