// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/open_batches.h"

#include <algorithm>
#include <string>
#include <utility>

#include "headrace/base/clock.h"

namespace headrace {
namespace {

// Batches of this many bytes, with this many rows per thread, use two buffers if possible.
constexpr size_t kLargeBatch = 16 << 20;
constexpr int kManyRows = 32;

const ErrorCode kListsTooLarge{
    "HR0705", ErrorKind::kConfig, "batch of lists larger than the memory limit",
    "Fields delivered as lists vary in size with the records. One batch of them must fit into "
    "half of what memory_limit leaves after slots and threads. Use a smaller batch, a higher "
    "limit, or a transform that makes the records smaller (Resize)."};

}  // namespace

OpenBatches::OpenBatches(const RowTask& task, const RecordOrder& order, const SlotRings& rings,
                         const MemoryShares& shares, Makers makers)
    : task_(task),
      order_(order),
      rings_(rings),
      shares_(shares),
      makers_(std::move(makers)),
      has_lists_(task.plan->delivers_lists()),
      assembles_(task.plan->assembles()),
      spares_memory_(!makers_.to_device && !makers_.lends &&
                     shares.slots / size_t(shares.depth) >= kLargeBatch &&
                     task.layout.rank_batch() >= kManyRows * makers_.threads),
      on_device_{
          .left = task.left,
          .finished = [&rings](size_t output, size_t) { return rings.take_finished(output); },
          .decoding = task.decoding},
      values_(shares.lists + shares.assembled),
      runs_(makers_.threads, makers_.python_workers, task.layout.rank_batch(), makers_.lends) {}

// --- The stream ----------------------------------------------------------------------------------

bool OpenBatches::begin(int64_t epoch, int64_t batch) {
  MutexLock lock(mutex_);
  broken_ = nullptr;
  const bool goes_on = epoch == epoch_ + 1 && batch == 0;
  epoch_ = epoch;
  next_open_ = batch;
  next_sequence_ = 0;
  predicted_.reset();
  return goes_on;
}

void OpenBatches::go() {
  MutexLock lock(mutex_);
  running_ = true;
}

void OpenBatches::end() {
  MutexLock lock(mutex_);
  running_ = false;
}

bool OpenBatches::any_arrives() const {
  return std::ranges::any_of(lent_, [](const auto& each) { return each.second.arrives; });
}

bool OpenBatches::delivers() const {
  MutexLock lock(mutex_);
  return running_;
}

bool OpenBatches::wait_idle(std::chrono::milliseconds time) {
  const auto is_idle = [&]() REQUIRES_LOCK(mutex_) {
    return runs_.empty() && assembling_ == 0 && !any_arrives();
  };
  MutexLock lock(mutex_);
  if (!is_idle()) progress_.wait_for(mutex_, time);
  return is_idle();
}

void OpenBatches::clear() {
  MutexLock lock(mutex_);
  lent_.clear();
  recalled_.clear();
  open_.clear();
  list_bytes_ = assembled_bytes_ = 0;
}

// --- Claiming ------------------------------------------------------------------------------------

// Lists of values have no slots, so they are limited by their bytes: beyond the budget, only the
// batch that the consumer waits for continues. Claims are in order, so that is the only open one.
bool OpenBatches::may_grow_lists() const {
  if (list_bytes_ < shares_.lists || !has_lists_ || open_.empty()) return true;
  const OpenBatch& batch = *open_.front();
  return open_.size() == 1 && !batch.ledger.too_large_ &&
         batch.ledger.claimed_ < batch.builder.rows();
}

std::unique_ptr<RecordRun> OpenBatches::claim() {
  MutexLock lock(mutex_);
  if (std::unique_ptr<RecordRun> run = runs_.take_on()) return run;
  if (!running_ || !may_grow_lists()) return nullptr;
  if (!recalled_.empty()) {
    Loan& loan = recalled_.front();
    std::unique_ptr<RecordRun> run = new_run(*loan.of, loan.first, loan.count, false);
    loan.first += run->rows.count;
    loan.count -= run->rows.count;
    if (loan.count == 0) recalled_.pop_front();
    return run;
  }
  // Note [Rows are claimed just in time for Python]
  if (makers_.lends && runs_.suffice_for_python()) return nullptr;
  OpenBatch* batch = next_to_claim();
  if (!batch && !open_next()) return nullptr;
  if (!batch) batch = open_.back().get();
  BatchLedger& ledger = batch->ledger;
  std::unique_ptr<RecordRun> run =
      new_run(*batch, ledger.claimed_, ledger.lent_from_ - ledger.claimed_, true);
  ledger.claimed_ += run->rows.count;
  return run;
}

// The first batch that has unclaimed rows; null if none has.
OpenBatch* OpenBatches::next_to_claim() {
  for (const auto& batch : open_) {
    if (batch->ledger.claimed_ < batch->ledger.lent_from_) return batch.get();
  }
  return nullptr;
}

// Claims up to this many rows. Rows that are no longer in the stream are read one by one.
std::unique_ptr<RecordRun> OpenBatches::new_run(OpenBatch& batch, int first, int most,
                                                bool streamed) {
  return runs_.begin(batch, batch.builder,
                     {.epoch = epoch_,
                      .batch = batch.builder.index(),
                      .position = batch.builder.range().begin,
                      .sequence = streamed ? batch.ledger.first_sequence_ : -1,
                      .first = first,
                      .count = most});
}

// --- Opening -------------------------------------------------------------------------------------
//
// The memory of predicted rows counts as that of lists from when the batch is opened, and as that
// of tensors once it is full, as if values had been held one by one and then copied. So predictions
// affect neither how much is made ahead nor which batches are rejected.

// Note [When the third buffer is used]
// While the consumer waits for data, two buffers suffice: it releases one batch when it takes the
// next, and a third would only save the moment in which threads are idle during the last records of
// a batch. So large batches get a third buffer only when one is ready and the consumer is busy, or
// when it keeps more than one; and immediately if a batch has few records per thread. If batches go
// to a device, the consumer is a prefetcher, which takes the next batch while the device still
// reads the slots of the previous ones, so all buffers are used.
bool OpenBatches::may_use_spare() const {
  if (!spares_memory_ || consumer_keeps_) return true;
  if (consumer_waits_ || open_.empty()) return false;
  return is_filled(*open_.front());
}

bool OpenBatches::open_next() {
  if (next_open_ >= task_.layout.batches()) return false;
  if (!rings_.may_open(may_use_spare())) return false;
  // Lists and small fields have no ring, but the number of batches ahead of the consumer is still
  // bounded.
  if (static_cast<int>(open_.size()) >= shares_.depth) return false;
  const BatchRange range = task_.layout.range(next_open_);
  if (!predicted_) {
    const auto index = [this, epoch = epoch_](int64_t at) { return order_.index_at(epoch, at); };
    predicted_ = predict(*task_.plan, task_.sounds, task_.seed, static_cast<uint64_t>(epoch_),
                         range, index, shares_.lists / 2);
  }
  if (!open_.empty() && list_bytes_ + predicted_->bytes > shares_.lists) return false;
  auto memory = [this](size_t output, size_t bytes) {
    return task_.plan->outputs()[output].as_list ? values_.take(bytes) : rings_.take(output, bytes);
  };
  open_.push_back(std::make_unique<OpenBatch>(OpenBatch{
      .builder = BatchBuilder(*task_.plan, *task_.source, epoch_, next_open_, range,
                              std::move(memory), on_device_, std::move(predicted_->rows))}));
  BatchLedger& ledger = open_.back()->ledger;
  ledger.first_sequence_ = next_sequence_;
  ledger.lent_from_ = static_cast<int>(range.size());
  ledger.list_bytes_ = ledger.predicted_bytes_ = predicted_->bytes;
  list_bytes_ += predicted_->bytes;
  predicted_.reset();
  ++next_open_;
  next_sequence_ += range.size();
  if (task_.plan->batch_steps().empty()) return true;
  const int64_t group = task_.plan->batch_group();
  for (int64_t row = 0; row < range.size(); row += group) {
    ledger.unsettled_.push_back(static_cast<int>(std::min(group, range.size() - row)));
  }
  return true;
}

// --- Finishing -----------------------------------------------------------------------------------

void OpenBatches::note(RecordRun& run) {
  RowsReport& report = run.report;
  if (report.warnings == 0 && report.list_bytes == 0 && report.failures.empty()) return;
  MutexLock lock(mutex_);
  BatchLedger& ledger = run.of->ledger;
  ledger.warnings_ += std::exchange(report.warnings, 0);
  ledger.failures_.splice(ledger.failures_.end(), report.failures);
  const size_t bytes = std::exchange(report.list_bytes, 0);
  ledger.list_bytes_ += bytes;
  list_bytes_ += bytes;
  const bool fits = ledger.list_bytes_ - ledger.predicted_bytes_ <= shares_.lists;
  if (bytes == 0 || !has_lists_ || fits) return;
  ledger.too_large_ = true;
  progress_.notify_all();
}

std::vector<MixGroup> OpenBatches::settle_groups(const RecordRun& run) {
  std::vector<MixGroup> complete;
  if (task_.plan->batch_steps().empty()) return complete;
  const int64_t group = task_.plan->batch_group(), rows = run.to->rows();
  const int64_t end = run.rows.first + run.rows.count;
  MutexLock lock(mutex_);  // also makes rows of other threads visible
  std::vector<int>& unsettled = run.of->ledger.unsettled_;
  for (int64_t row = run.rows.first; row < end;) {
    const int64_t number = row / group, next = std::min((number + 1) * group, end);
    unsettled[size_t(number)] -= static_cast<int>(next - row);
    row = next;
    if (unsettled[size_t(number)] > 0) continue;
    complete.push_back({number * group, std::min(group, rows - number * group)});
  }
  return complete;
}

void OpenBatches::finish(std::unique_ptr<RecordRun>& run, RunOutcome stands) {
  const RowsReport report = std::exchange(run->report, {});
  bool is_full = false, consumer_waits = true;
  OpenBatch* to_assemble = nullptr;
  {
    MutexLock lock(mutex_);
    run->activity.kind =
        stands == RunOutcome::kAtPython ? RunActivity::Kind::kForPython : RunActivity::Kind::kWaits;
    stats_.stages += report.stages;
    runs_.note(report);
    OpenBatch& batch = *run->of;
    batch.ledger.done_ += report.settled;
    batch.ledger.remarks_ += report.remarks;
    is_full = is_filled(batch);
    if (is_full) to_assemble = begin_assembly();
    consumer_waits = consumer_waits_;
    if (stands == RunOutcome::kLacksMemory) {
      runs_.lacks_memory(std::move(run));
    } else if (stands == RunOutcome::kDone) {
      runs_.end(std::move(run));
      if (runs_.empty() || is_full) progress_.notify_all();
    }
  }
  if (to_assemble) assemble(*to_assemble);
  if (is_full && !consumer_waits) makers_.wake();  // a third buffer may be used
}

void OpenBatches::enter_python(const std::vector<std::unique_ptr<RecordRun>>& runs) {
  {
    MutexLock lock(mutex_);
    for (const auto& run : runs) {
      run->activity.step = -1;
      run->activity.kind = RunActivity::Kind::kInPython;
    }
  }
  if (makers_.lends) makers_.wake();
}

void OpenBatches::go_on(std::vector<std::unique_ptr<RecordRun>>& runs, double python_seconds) {
  MutexLock lock(mutex_);
  stats_.stages.python += python_seconds;
  runs_.note_python(runs, python_seconds);
  for (auto& run : runs) {
    run->activity.kind = RunActivity::Kind::kWaits;
    runs_.back_from_python(std::move(run));
  }
}

void OpenBatches::abandon(std::unique_ptr<RecordRun> run, std::exception_ptr error) noexcept {
  if (run) {
    {
      MutexLock lock(mutex_);
      run->activity.kind = RunActivity::Kind::kWaits;  // its records are no longer accessed
    }
    run->flight.clear();  // with everything they hold, before the run counts as ended
  }
  MutexLock lock(mutex_);
  if (!broken_) broken_ = std::move(error);
  runs_.lose(run.get());
  progress_.notify_all();
}

// --- Assembly ------------------------------------------------------------------------------------
//
// Note [Who makes the tensors of ragged fields]
// The worker that writes the last row of a batch, so that the consumer finds it ready. Until a
// batch is handed over, its tensors count against their part of memory_limit. They are made in the
// order of the batches, so later tensors never take the room of an earlier batch: the first one
// always has all of it. A batch without room waits until the consumer has taken the ones before it;
// then an idle worker makes the tensors, or the consumer, whichever is first.

bool OpenBatches::awaits_assembly(const OpenBatch& batch) const {
  const BatchLedger& ledger = batch.ledger;
  return assembles_ && ledger.assembly_ == Assembly::kNone && is_filled(batch) &&
         !ledger.too_large_ && std::ranges::none_of(ledger.failures_, &RowFailure::fatal);
}

OpenBatch* OpenBatches::begin_assembly() {
  if (!assembles_ || !running_) return nullptr;
  for (const auto& batch : open_) {
    BatchLedger& ledger = batch->ledger;
    if (ledger.assembly_ == Assembly::kDone) continue;
    const bool fits = assembled_bytes_ + ledger.assembled_bytes_ <= shares_.assembled;
    if (!awaits_assembly(*batch) || !fits) return nullptr;
    ledger.assembly_ = Assembly::kUnderWay;
    ++assembling_;
    return batch.get();
  }
  return nullptr;
}

void OpenBatches::assemble(OpenBatch& batch) {
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
  } catch (...) {  // raised to the consumer in place of the batch
    error = std::current_exception();
  }
  MutexLock lock(mutex_);
  BatchLedger& ledger = batch.ledger;
  ledger.assembled_bytes_ = bytes;
  ledger.assembly_error_ = error;
  ledger.assembly_ = has_room ? Assembly::kDone : Assembly::kNone;
  ledger.list_bytes_ -= freed;
  list_bytes_ -= freed;
  --assembling_;
  stats_.stages.store += now() - begin;
  progress_.notify_all();
}

bool OpenBatches::assemble_next() {
  OpenBatch* batch = nullptr;
  {
    MutexLock lock(mutex_);
    batch = begin_assembly();
  }
  if (batch) assemble(*batch);
  return batch != nullptr;
}

// --- The consumer --------------------------------------------------------------------------------

void OpenBatches::consumer_arrives() {
  bool begins_to_keep = false;
  {
    MutexLock lock(mutex_);
    const bool keeps = rings_.max_out() - static_cast<int>(open_.size()) >= 2;
    begins_to_keep = keeps && !consumer_keeps_;
    consumer_keeps_ = keeps;
    consumer_waits_ = true;
  }
  if (begins_to_keep) makers_.wake();
}

bool OpenBatches::is_first_ready() const {
  if (open_.empty()) return false;
  const OpenBatch& first = *open_.front();
  const bool complete = is_filled(first) && first.ledger.assembly_ != Assembly::kUnderWay;
  return (complete && !awaits_assembly(first)) || first.ledger.too_large_;
}

OpenBatches::Look OpenBatches::look_now() {
  if (open_.empty() && next_open_ >= task_.layout.batches()) return {.kind = Look::Kind::kEnd};
  if (is_first_ready()) {
    const OpenBatch& first = *open_.front();
    const BatchLedger& ledger = first.ledger;
    if (ledger.too_large_) {
      raise(kListsTooLarge,
            std::to_string(ledger.done_) + " of the " + std::to_string(first.builder.rows()) +
                " records of batch " + std::to_string(first.builder.index()) + " take " +
                std::to_string(ledger.list_bytes_ >> 20) + " MiB, but memory_limit leaves " +
                std::to_string(shares_.lists >> 20) + " MiB for them",
            "raise memory_limit, or use a smaller batch_size");
    }
    stats_.warnings += ledger.warnings_;
    stats_.remarks += ledger.remarks_;
    Look look{.kind = Look::Kind::kBatch, .batch = std::move(open_.front())};
    open_.pop_front();
    return look;
  }
  if (OpenBatch* const batch = begin_assembly()) {
    return {.kind = Look::Kind::kAssemble, .to_assemble = batch};
  }
  if (broken_) {
    running_ = false;  // the worker's current rows will never be finished
    std::rethrow_exception(std::exchange(broken_, nullptr));
  }
  return {};
}

OpenBatches::Look OpenBatches::look() {
  MutexLock lock(mutex_);
  return look_now();
}

std::unique_ptr<OpenBatch> OpenBatches::await(const Waiting& waiting) {
  const double begin = now();
  bool is_patient = waiting.patience_seconds > 0;
  consumer_arrives();
  for (;;) {
    Look look;
    {
      MutexLock lock(mutex_);
      look = look_now();
      if (look.kind == Look::Kind::kNotYet) {
        progress_.wait_for(mutex_, kWaitSlice);
        look = look_now();
      }
      if (look.kind == Look::Kind::kBatch) stats_.wait_seconds += now() - begin;
      if (look.kind == Look::Kind::kBatch || look.kind == Look::Kind::kEnd) {
        consumer_waits_ = false;
        return std::move(look.batch);
      }
    }
    if (look.to_assemble) {
      assemble(*look.to_assemble);
      continue;
    }
    recall_expired();
    if (waiting.interrupted) waiting.interrupted();
    if (is_patient && now() - begin > waiting.patience_seconds) {
      is_patient = false;
      waiting.impatient(now() - begin);
    }
  }
}

void OpenBatches::leave(const OpenBatch& open, const Batch& batch) {
  MutexLock lock(mutex_);
  list_bytes_ -= open.ledger.list_bytes_;
  assembled_bytes_ -= open.ledger.assembled_bytes_;
  ++stats_.batches;
  stats_.predicted += open.builder.prediction_held();
  stats_.records += batch.size;
  for (const BatchField& field : batch.fields) {
    if (!field.unfinished) continue;
    for (const auto& [why, rows] : field.unfinished->finished_before()) {
      stats_.finished_before[why] += rows;
    }
  }
}

int OpenBatches::open() const {
  MutexLock lock(mutex_);
  return static_cast<int>(open_.size());
}

// --- Inspection ---------------------------------------------------------------------------------

std::vector<RunStatus> OpenBatches::doing() const {
  MutexLock lock(mutex_);
  return runs_.doing();
}

EngineStats OpenBatches::stats() const {
  MutexLock lock(mutex_);
  EngineStats stats = stats_;
  stats.memory_used = list_bytes_ + assembled_bytes_ + values_.unused_bytes();
  return stats;
}

}  // namespace headrace
