// SPDX-License-Identifier: Apache-2.0
#include "headrace/loader.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/executor/engine.h"
#include "headrace/executor/resources.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/sampling/shuffled_by_source.h"

namespace headrace {
namespace {

const ErrorCode kBadOption{
    "HR0710", ErrorKind::kConfig, "bad loader option",
    "A loader's options must make sense together; the message says which does not and what would."};

const ErrorCode kOtherState{
    "HR0711", ErrorKind::kConfig, "state of another run",
    "A state resumes only the run that it was taken from: the same records in the same order, the "
    "same sampler and the same global batch. The number of threads and of ranks may differ."};

const ErrorCode kNothingLeft{
    "HR0785", ErrorKind::kData, "nothing left of an epoch",
    "Every record of the epoch was bad and on_error=\"skip\" left all of them out, so there was no "
    "batch. Usually the path, the codec or a permission is wrong for all records at once. "
    "`headrace scan` lists what is wrong with each."};

const ErrorCode kOutOfRange{"HR0712", ErrorKind::kConfig, "no such batch",
                            "Batches of an epoch are numbered from 0 to len(loader) - 1."};

int64_t global_batch_of(const LoaderOptions& options) {
  if ((options.batch_size > 0) == (options.global_batch_size > 0)) {
    raise(kBadOption, "give exactly one of batch_size (per rank) and global_batch_size, positive",
          "Loader(..., batch_size=256)");
  }
  constexpr int64_t kMost = int64_t{1} << 31;  // times a rank it fits into 64 bits
  const int64_t times = options.global_batch_size > 0 ? 1 : options.world_size;
  const int64_t records = std::max(options.global_batch_size, options.batch_size);
  if (records > kMost / times) {
    raise(kBadOption, "a batch of " + std::to_string(records) + " records" +
                          (times > 1 ? " on each of " + std::to_string(times) + " ranks" : "") +
                          " is more than 2^31 together");
  }
  return records * times;
}

void check(const LoaderOptions& options, const Source& source) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    raise(kBadOption, "rank " + std::to_string(options.rank) + " of world size " +
                          std::to_string(options.world_size) + " does not exist");
  }
  if (options.threads < 0) {
    raise(kBadOption, "threads must be positive (got " + std::to_string(options.threads) + ")");
  }
  if (options.on_error == OnError::kSkip && options.world_size > 1) {
    raise(kBadOption, "on_error=\"skip\" shortens batches, and several ranks must stay in step",
          "on_error=\"substitute\" keeps every batch full");
  }
  if (options.shuffle_window < 0 || (options.shuffle_window > 0 && !options.shuffle)) {
    raise(kBadOption, "shuffle_window=" + std::to_string(options.shuffle_window) +
                          " is a number of blocks, with shuffle=\"blocks\"");
  }
  if (options.shuffle && options.sampler) {
    raise(kBadOption, "shuffle=True and sampler= both decide the order", "give one of them");
  }
  if (source.size() == 0) raise(kBadOption, "the source has no records: " + source.description());
}

std::string text_of(const RowIndexStats& stats) {
  if (stats.file.empty()) return stats.note.empty() ? "off" : "none (" + stats.note + ")";
  return std::to_string(stats.entries) + " of " + std::to_string(stats.pictures) + " pictures (" +
         (stats.learns ? "grows, " : "") + stats.file + ")";
}

SamplerPtr sampler_of(const LoaderOptions& options, const SourcePtr& source) {
  if (options.sampler) return options.sampler;
  if (options.shuffle_window > 0) {
    return shuffled_blocks(source->block_ends(), options.shuffle_window);
  }
  return options.shuffle ? shuffled_by(source) : sequential(source->size());
}

}  // namespace

class Loader::Impl {
  // What the consumer receives next; of the epoch up to there, the bad records, and whether there
  // was a good one.
  struct Position {
    int64_t epoch = 0, batch = 0, bad_records = 0;
    bool received = false;
  };

 public:
  Impl(SourcePtr source, const Pipeline& pipeline, LoaderOptions options)
      : options_(resolve(std::move(options), *source)),
        plan_(make_plan(source->schema(), pipeline, options_.plan)),
        cache_(with_record_cache(source, plan_->wanted(), options_.cache)),
        row_index_(with_row_index(cache_.source, options_.row_index, options_.row_index_file)),
        source_(row_index_.source),
        sampler_(sampler_of(options_, source)),
        layout_(sampler_->size(), global_batch_of(options_), options_.rank, options_.world_size,
                options_.last_batch, plan_->batch_group()),
        bad_records_(options_.error_budget, options_.error_rate, options_.quarantine),
        fingerprint_(mix64(mix64(source_->fingerprint(), sampler_->fingerprint()),
                           static_cast<uint64_t>(options_.last_batch))),
        residence_(resident_question(source, pipeline)),
        seed_(options_.seed) {
    if (layout_.batches() == 0 && sampler_->size() > 0) {
      raise(kBadOption,
            "last_batch=\"drop\" leaves no batch: an epoch has " +
                std::to_string(sampler_->size()) + " records, a batch " +
                std::to_string(layout_.global_batch()),
            "a smaller batch_size, or last_batch=\"keep\"");
    }
    simd_level();  // throws here, not on a thread, where HEADRACE_SIMD names none
    // Throws now rather than at the first batch.
    divide_memory(engine_memory(), batch_bytes(*plan_, layout_.rank_batch()), options_.threads,
                  source_->read_style() != ReadStyle::kMemory);
  }

  LoaderOptions resolve(LoaderOptions options, const Source& source) {
    check(options, source);
    threads_origin_ = "given";
    memory_origin_ = "given";
    if (options.threads == 0) {
      const ResolvedThreads found = default_threads();
      options.threads = found.threads;
      threads_origin_ = found.origin;
    }
    if (options.memory_limit == 0) {
      const ResolvedMemory found = default_memory_limit();
      options.memory_limit = found.bytes;
      memory_origin_ = found.origin;
    }
    if (options.cache >= options.memory_limit) {
      raise(kBadOption,
            "the cache of " + std::to_string(options.cache >> 20) + " MiB leaves nothing of " +
                std::to_string(options.memory_limit >> 20) + " MiB of memory_limit (" +
                memory_origin_ + ")",
            "a smaller cache=, or a memory_limit= that holds it and the batches");
    }
    return options;
  }

  ResidenceQuestion resident_question(const SourcePtr& source, const Pipeline& pipeline) const {
    std::string no_view;
    if (!sampler_->in_order()) no_view = "the order is " + sampler_->description();
    if (options_.last_batch == LastBatch::kPad) no_view = "last_batch=\"pad\" repeats records";
    return {.use = options_.resident,
            .source = source,
            .pipeline = pipeline,
            .plan = plan_,
            .sampler = sampler_,
            .layout = layout_,
            .threads = options_.threads,
            .memory_limit = options_.memory_limit - (cache_.cache ? options_.cache : 0),
            .view = options_.view,
            .why_no_view = no_view,
            .device = options_.resident_on_device ? options_.device : nullptr,
            .fraction = options_.fraction};
  }

  // shared: with a call of another thread's that is under way when the engine goes.
  std::shared_ptr<Engine> engine() {
    MutexLock lock(mutex_);
    if (!engine_) {
      const std::shared_ptr<const ResidentSource> resident = residence_.source();
      const SourcePtr source = resident ? SourcePtr(resident) : source_;
      engine_ = std::make_shared<Engine>(
          EngineOptions{source, resident ? residence_.plan() : plan_, sampler_, layout_,
                        options_.seed, options_.threads, options_.python_workers, options_.on_error,
                        engine_memory(), options_.warn, options_.device, options_.patience_seconds},
          bad_records_);
    }
    return engine_;
  }
  std::shared_ptr<Engine> engine_if_any() const {
    MutexLock lock(mutex_);
    return engine_;
  }
  void drop_engine() {
    std::shared_ptr<Engine> dropped;  // without the lock: its threads may take a while
    MutexLock lock(mutex_);
    dropped.swap(engine_);
  }

  // Makes the records that are to stay in memory; what the engine has is streaming then.
  void prepare(const std::function<void()>& interrupted) {
    if (!residence_.is_on() || residence_.is_prepared()) return;
    drop_engine();
    residence_.prepare(source_, options_.warn, interrupted);
    keep_row_index();
  }
  bool settle(const std::function<void()>& interrupted) {
    prepare(interrupted);
    return residence_.is_on_device();
  }

  // The next batch of data that is cut without an engine, as far as that goes.
  std::optional<Batch> cut(const std::function<void()>& interrupted) {
    const Position at = position();
    if (at.batch >= layout_.batches()) return std::nullopt;
    const double begin = now();
    std::optional<Batch> batch =
        residence_.cut(options_.seed, static_cast<uint64_t>(at.epoch), at.batch);
    if (!batch) {
      engine()->start(at.epoch, at.batch, interrupted);
      return engine()->next(interrupted);
    }
    cut_seconds_ = cut_seconds_ + now() - begin;
    ++cut_batches_;
    cut_records_ += batch->size;
    return batch;
  }

  std::optional<Batch> next(const std::function<void()>& interrupted) {
    before_ = position();
    if (started_ && !residence_.cuts() && !engine()->delivers()) started_ = false;
    if (!started_) {
      last_next_ = now();
      prepare(interrupted);
      if (!residence_.cuts()) engine()->start(before_.epoch, before_.batch, interrupted);
      bad_records_.begin_epoch(before_.bad_records);
      repaired_before_ = repaired_so_far();
      started_ = true;
    }
    std::optional<Batch> batch;
    do {
      try {
        batch = residence_.cuts() ? cut(interrupted) : engine()->next(interrupted);
      } catch (const Exception&) {
        not_received(interrupted);
        throw;
      } catch (const std::bad_alloc&) {
        not_received(interrupted);
        throw;
      }
      // From one call's end to the next one's: what the consumer does is part of the iteration.
      const double time = now();
      wall_seconds_ = wall_seconds_ + time - std::exchange(last_next_, time);
      if (!batch) {
        end_epoch(interrupted);
        keep_row_index();
        return std::nullopt;
      }
      set_position({batch->epoch, batch->index + 1, bad_records_.in_epoch(),
                    position().received || batch->size > 0});
    } while (batch->size == 0);  // every record of it was skipped
    return batch;
  }

  // What is worth a word goes with the end of the epoch.
  void end_epoch(const std::function<void()>& interrupted) {
    const Position at = position();
    if (!at.received && at.bad_records > 0) {
      halt(interrupted);
      throw Exception(nothing_left(at));
    }
    const int64_t before = std::exchange(repaired_before_, repaired_so_far());
    const int64_t its = repaired_before_ - before;
    if (its > 0 && options_.warn) {  // where it throws, the next call finds the end again
      options_.warn(std::to_string(its) + (its == 1 ? " picture" : " pictures") + " of epoch " +
                    std::to_string(at.epoch) +
                    " had damage that the decoder repaired (`headrace scan --strict` lists them; "
                    "strict=True makes it an error)");
    }
    set_epoch(at.epoch + 1, interrupted);
  }

  int64_t repaired_so_far() const {
    const std::shared_ptr<Engine> engine = engine_if_any();
    return engine ? engine->stats().repaired : 0;
  }

  Error nothing_left(const Position& at) const {
    Error error{.code = &kNothingLeft,
                .what = "all " + std::to_string(at.bad_records) + " records of epoch " +
                        std::to_string(at.epoch) + " are bad, and on_error=\"skip\" left them out",
                .hint = "`headrace scan` lists what is wrong with each"};
    if (const std::vector<BadRecord> all = bad_records_.list(); !all.empty())
      error.note = "the last one: " + all.back().error.what + " (" + all.back().key + ")";
    return error;
  }

  // The next call tries it again.
  void not_received(const std::function<void()>& interrupted) {
    halt(interrupted);
    MutexLock lock(mutex_);
    position_.bad_records = std::min(position_.bad_records, bad_records_.in_epoch());
  }

  void take_back() {
    started_ = false;
    set_position(before_);
  }

  void set_epoch(int64_t epoch, const std::function<void()>& interrupted) {
    if (epoch < 0)
      raise(kBadOption, "epoch must not be negative (got " + std::to_string(epoch) + ")");
    halt(interrupted);
    set_position({epoch, 0, 0, false});
  }

  void restart(const std::function<void()>& interrupted) {
    const Position at = position();
    set_epoch(at.batch > 0 ? at.epoch + 1 : at.epoch, interrupted);
  }

  LoaderState state() const {
    MutexLock lock(mutex_);
    return {seed_,
            position_.epoch,
            position_.batch,
            layout_.global_batch(),
            layout_.positions(),
            position_.bad_records,
            fingerprint_};
  }

  void load_state(const LoaderState& state, const std::function<void()>& interrupted) {
    if (state.global_batch != layout_.global_batch()) {
      raise(kOtherState,
            "the state was taken with a global batch of " + std::to_string(state.global_batch) +
                ", this loader's is " + std::to_string(layout_.global_batch()) + " (" +
                std::to_string(layout_.rank_batch()) + " x " + std::to_string(options_.world_size) +
                " ranks)",
            "global_batch_size=" + std::to_string(state.global_batch));
    }
    if (state.records != layout_.positions() || state.fingerprint != fingerprint_) {
      raise(kOtherState,
            "the state is of other records or another order: " + std::to_string(state.records) +
                " records an epoch there, " + std::to_string(layout_.positions()) +
                " here, fingerprints " + (state.fingerprint == fingerprint_ ? "equal" : "differ"),
            "open the same source with the same sampler= and last_batch=");
    }
    if (state.epoch < 0 || state.batch < 0 || state.batch > layout_.batches()) {
      raise(kOtherState, "epoch " + std::to_string(state.epoch) + ", batch " +
                             std::to_string(state.batch) + " does not exist here");
    }
    if (state.bad_records < 0) {  // which would widen the budget
      raise(kOtherState, std::to_string(state.bad_records) + " bad records are no number of them");
    }
    halt(interrupted);
    if (state.seed != options_.seed) {
      options_.seed = state.seed;
      drop_engine();
    }
    set_position({state.epoch, state.batch, state.bad_records, state.batch > 0});
    MutexLock lock(mutex_);
    seed_ = state.seed;
  }

  Batch make(int64_t epoch, int64_t index) {
    check_batch(epoch, index);
    return engine()->make(epoch, index);
  }

  std::vector<int64_t> indices(int64_t epoch, int64_t index) const {
    check_batch(epoch, index);
    std::vector<int64_t> out;
    const BatchRange range = layout_.range(index);
    for (int64_t p = range.begin; p < range.end; ++p) {
      out.push_back(
          sampler_->index(options_.seed, static_cast<uint64_t>(epoch), p % layout_.positions()));
    }
    return out;
  }

  LoaderStats stats() const {
    LoaderStats out;
    out.row_index = row_index_stats();
    if (cache_.cache) out.cache = cache_.cache->counts();
    out.threads = options_.threads;
    out.memory_limit = options_.memory_limit;
    out.bad_records = bad_records_.total();
    const std::shared_ptr<Engine> engine = engine_if_any();
    const EngineStats stats = engine ? engine->stats() : EngineStats{};
    const ResidentStats resident = residence_.stats();
    out.wall_seconds = wall_seconds_;
    out.batches = stats.batches + cut_batches_;
    out.records = stats.records + cut_records_;
    out.warnings = stats.warnings;
    out.repaired = stats.repaired;
    out.copies = stats.copies + resident.beyond;
    out.wait_seconds = stats.wait_seconds + cut_seconds_;
    out.memory_wait_seconds = stats.memory_wait_seconds;
    out.stages = stats.stages;
    out.resident_bytes = residence_.source() ? residence_.bytes() : 0;
    const size_t held = out.cache.bytes + out.resident_bytes + resident.batch_bytes;
    out.memory_used = stats.memory_used + held;
    out.memory_peak = stats.memory_peak + held;
    return out;
  }

  std::string resolved(std::string_view option) const {
    if (option == "threads") return std::to_string(options_.threads) + " (" + threads_origin_ + ")";
    if (option == "memory_limit") {
      return std::to_string(options_.memory_limit >> 20) + " MiB (" + memory_origin_ + ")";
    }
    if (option == "row_index") return text_of(row_index_stats());
    if (option == "resident") return residence_.text();
    if (option == "order") return sampler_->description();
    return {};
  }

  void halt(const std::function<void()>& interrupted) {
    started_ = false;
    if (const std::shared_ptr<Engine> engine = engine_if_any()) engine->stop(interrupted);
  }
  void close() {
    started_ = false;
    drop_engine();
    residence_.drop();
    keep_row_index();
  }
  void keep_row_index() {
    if (row_index_.index && row_index_.index->learns()) row_index_.index->keep();
  }

  const Plan& plan() const { return *plan_; }
  const LoaderOptions& options() const { return options_; }
  const BatchLayout& layout() const { return layout_; }
  int64_t epoch() const { return position().epoch; }
  std::vector<BadRecord> quarantine() const { return bad_records_.list(); }

 private:
  Position position() const {
    MutexLock lock(mutex_);
    return position_;
  }
  void set_position(Position position) {
    MutexLock lock(mutex_);
    position_ = position;
  }

  size_t engine_memory() const {
    return options_.memory_limit - (cache_.cache ? options_.cache : 0) - residence_.bytes();
  }
  void check_batch(int64_t epoch, int64_t index) const {
    if (epoch >= 0 && index >= 0 && index < layout_.batches()) return;
    raise(kOutOfRange, "batch " + std::to_string(index) + " of epoch " + std::to_string(epoch) +
                           "; an epoch has " + std::to_string(layout_.batches()) + " batches");
  }

  RowIndexStats row_index_stats() const {
    RowIndexStats out;
    out.note = row_index_.note;
    if (!row_index_.index) return out;
    const IndexedSource& index = *row_index_.index;
    out.file = index.file().path();
    out.learns = index.learns() && !index.file().failed();
    if (index.file().failed()) out.note = "it cannot be written any more: is the disk full?";
    out.pictures = IndexedFields(index).key().slots();
    const IndexedSource::Counts counts = index.counts();
    MutexLock lock(counting_);
    if (counts.learned != counted_at_) {  // the whole table is read for it
      counted_at_ = counts.learned;
      entries_ = index.file().contents().entries;
    }
    out.entries = entries_;
    out.used = counts.used;
    out.stale = counts.stale;
    out.learned = counts.learned;
    return out;
  }

  std::string threads_origin_, memory_origin_;
  LoaderOptions options_;
  std::shared_ptr<const Plan> plan_;
  WithRecordCache cache_;
  WithRowIndex row_index_;
  mutable Mutex counting_;
  // Of the row index, when so much was learned.
  mutable int64_t entries_ GUARDED_BY(counting_) = 0, counted_at_ GUARDED_BY(counting_) = -1;
  SourcePtr source_;  // through both
  SamplerPtr sampler_;
  BatchLayout layout_;
  BadRecords bad_records_;
  uint64_t fingerprint_;
  Residence residence_;
  // Read by stats() while the prefetcher's thread takes batches.
  std::atomic<double> cut_seconds_ = 0;
  std::atomic<int64_t> cut_batches_ = 0, cut_records_ = 0;
  Position before_;              // the last call of next()
  int64_t repaired_before_ = 0;  // pictures, when the iteration began
  std::atomic<bool> started_ = false;
  std::atomic<double> wall_seconds_ = 0;  // stats() may be asked for by another thread
  double last_next_ = 0;
  // stats(), state() and batch() are asked for by other threads, too.
  mutable Mutex mutex_;
  uint64_t seed_ GUARDED_BY(mutex_);  // of options_
  Position position_ GUARDED_BY(mutex_);
  // Made at the first batch: a loader that only plans has no threads.
  std::shared_ptr<Engine> engine_ GUARDED_BY(mutex_);
};

Loader::Loader(SourcePtr source, const Pipeline& pipeline, const LoaderOptions& options)
    : impl_(std::make_unique<Impl>(std::move(source), pipeline, options)) {}

// In a forked child nothing of it can be ended: its threads are the parent's, and so may its locks
// be.
Loader::~Loader() {
  if (forked_from_running_engine()) (void)impl_.release();
}

void Loader::prepare() { impl_->engine(); }
void Loader::take_back() { impl_->take_back(); }

std::optional<Batch> Loader::next(const std::function<void()>& interrupted) {
  try {
    return impl_->next(interrupted);
  } catch (const std::bad_alloc&) {
    throw Exception(error_in_hand());
  }
}
int64_t Loader::batches_per_epoch() const { return impl_->layout().batches(); }
void Loader::restart(const std::function<void()>& interrupted) { impl_->restart(interrupted); }
void Loader::set_epoch(int64_t epoch, const std::function<void()>& interrupted) {
  impl_->set_epoch(epoch, interrupted);
}
int64_t Loader::epoch() const { return impl_->epoch(); }
LoaderState Loader::state() const { return impl_->state(); }
void Loader::load_state(const LoaderState& state, const std::function<void()>& interrupted) {
  impl_->load_state(state, interrupted);
}
bool Loader::settle(const std::function<void()>& interrupted) { return impl_->settle(interrupted); }
Batch Loader::batch(int64_t epoch, int64_t index) { return impl_->make(epoch, index); }
std::vector<int64_t> Loader::indices(int64_t epoch, int64_t index) const {
  return impl_->indices(epoch, index);
}
const Plan& Loader::plan() const { return impl_->plan(); }
const LoaderOptions& Loader::options() const { return impl_->options(); }
LoaderStats Loader::stats() const { return impl_->stats(); }
std::vector<BadRecord> Loader::quarantine() const { return impl_->quarantine(); }
std::string Loader::resolved(std::string_view option) const { return impl_->resolved(option); }
void Loader::rest() { impl_->halt({}); }
void Loader::close() {
  if (!forked_from_running_engine()) impl_->close();
}

}  // namespace headrace
