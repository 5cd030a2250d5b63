// SPDX-License-Identifier: Apache-2.0
// The loader over its parts: options (options.h), reading (read_path.h), where the work is
// done (work_placement.h), making batches (batch_maker.h) and the consumer's position (position.h).
#include "headrace/loader.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/executor/bad_records.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/loader/options.h"
#include "headrace/loader/position.h"
#include "headrace/loader/read_path.h"
#include "headrace/loader/warnings.h"
#include "headrace/loader/work_placement.h"
#include "headrace/sampling/sampler.h"
#include "headrace/sources/stored_media.h"

namespace headrace {
namespace {

const ErrorCode kNothingLeft{
    "HR0785", ErrorKind::kData, "epoch without valid records",
    "Every record of the epoch was bad, and on_error=\"skip\" skipped all of them, so there was no "
    "batch. Usually the path, the codec or a permission is wrong for all records. `headrace scan` "
    "lists the error of each record."};

const ErrorCode kOutOfRange{"HR0712", ErrorKind::kConfig, "batch not found",
                            "Batches of an epoch are numbered from 0 to len(loader) - 1."};

SamplerPtr sampler_of(const LoaderOptions& options, const SourcePtr& source) {
  if (options.sampler) return options.sampler;
  if (options.shuffle_window > 0) {
    return shuffled_blocks(source->block_ends(), options.shuffle_window);
  }
  return options.shuffle ? shuffled_by(source) : sequential(source->size());
}

// Whether an output can be made from this field, judged before there is a plan.
bool is_wanted(std::string_view field, const Schema& schema, const Pipeline& pipeline,
               const PlanOptions& options) {
  if (std::ranges::count(pipeline.dropped, field)) return false;
  const auto is_made = [&](const std::string& output) {
    return output != "id" && output != "key" && output != "valid" &&
           std::ranges::find(schema, output, &Field::name) == schema.end();
  };
  const auto in_python = [](const Spec& step) { return step.function != nullptr; };
  return options.fields.empty() || std::ranges::count(options.fields, field) ||
         std::ranges::any_of(options.fields, is_made) ||
         std::ranges::any_of(pipeline.transforms, in_python);
}

// The source, with details of images and audio from its files.
SourcePtr with_stored_forms(const SourcePtr& source, const Pipeline& pipeline,
                            const PlanOptions& options) {
  return with_stored_sounds(with_stored_pictures(source, options, [&](std::string_view field) {
    return is_wanted(field, source->schema(), pipeline, options);
  }));
}

}  // namespace

class Loader::Impl {
 public:
  Impl(SourcePtr source, const Pipeline& pipeline, LoaderOptions given)
      : resolved_(resolve(std::move(given), *source)),
        plan_(make_plan(source->schema(), pipeline, options().plan)),
        placement_(options(), *plan_, source),
        path_(source, plan_->wanted(), options()),
        sampler_(sampler_of(options(), source)),
        layout_(layout_of(options(), *sampler_, plan_->batch_group())),
        bad_records_(options().error_budget, options().error_rate, options().quarantine,
                     options().warn),
        warnings_(options().warn),
        maker_(make_maker(source, pipeline)),
        position_(options().seed, layout_, options().world_size,
                  mix64(mix64(path_.source()->fingerprint(), sampler_->fingerprint()),
                        static_cast<uint64_t>(options().last_batch)),
                  sampler_->streams()) {
    simd_level();  // throws here, not on a thread, if HEADRACE_SIMD is invalid
    const bool says_valid = std::ranges::find(plan_->outputs(), OutputOrigin::kValid,
                                              &Output::origin) != plan_->outputs().end();
    if (options().uneven == Uneven::kPad && !says_valid) {
      raise(kBadLoaderOption,
            "uneven=\"pad\" repeats records, and only the field valid shows which",
            "fields=[..., \"valid\"]");
    }
  }

  // A sampler may call Python, which takes a while and may fail: so it is called here, not on a
  // thread of the engine.
  void ask_for_order(int64_t epoch) const {
    if (sampler_->size() > 0) sampler_->index(position_.seed(), static_cast<uint64_t>(epoch), 0);
  }

  // Throws Exception if the memory is too small, now rather than at the first batch.
  std::unique_ptr<BatchMaker> make_maker(const SourcePtr& source, const Pipeline& pipeline) {
    if (layout_.batches() == 0 && sampler_->size() > 0) {
      raise(kBadLoaderOption,
            "last_batch=\"drop\" drops every batch: an epoch has " +
                std::to_string(sampler_->size()) + " records, but a batch has " +
                std::to_string(layout_.global_batch()),
            "use a smaller batch_size, or last_batch=\"keep\"");
    }
    EngineOptions engine = engine_options(*source);
    auto residence =
        std::make_unique<Residence>(resident_inputs(source, pipeline, engine.memory_limit));
    return placement_.maker(std::move(engine), std::move(residence), bad_records_);
  }

  EngineOptions engine_options(const Source& source) const {
    return {.task = {.source = path_.source(),
                     .plan = plan_,
                     .sampler = sampler_,
                     .layout = layout_,
                     .seed = options().seed,
                     .on_error = options().on_error,
                     .sounds = known_sound_forms(source)},
            .threads = options().threads,
            .python_workers = options().python_workers,
            .memory_limit = options().memory_limit - path_.cache_bytes(),
            .warn = options().warn,
            .device = options().device,
            .patience_seconds = options().patience_seconds,
            .record_timeout = options().record_timeout,
            .on_demand = options().on_demand};
  }

  ResidenceInputs resident_inputs(const SourcePtr& source, const Pipeline& pipeline,
                                  size_t memory_limit) const {
    std::string no_view;
    if (!sampler_->in_order()) no_view = "the order is " + sampler_->description();
    if (options().last_batch == LastBatch::kPad) no_view = "last_batch=\"pad\" repeats records";
    if (options().uneven == Uneven::kPad) no_view = "uneven=\"pad\" repeats records";
    return {.use = options().resident,
            .source = source,
            .pipeline = pipeline,
            .plan = plan_,
            .sampler = sampler_,
            .layout = layout_,
            .threads = options().threads,
            .memory_limit = memory_limit,
            .view = options().view,
            .why_no_view = no_view,
            .device = options().resident_on_device ? options().device : nullptr,
            .fraction = options().fraction};
  }

  void prepare() { maker_->prepare(); }
  bool load_resident(const InterruptCheck& check_interrupt) {
    const bool on_device = maker_->load_resident(check_interrupt);
    if (!std::exchange(loaded_, true)) path_.keep();  // all records may have been read for it
    return on_device;
  }

  void begin(const InterruptCheck& check_interrupt) {
    const Position::Place at = position_.place();
    ask_for_order(at.epoch);
    last_next_ = now();
    load_resident(check_interrupt);
    if (const auto changed = path_.look_at_files()) warnings_.changed_file(*changed);
    warnings_.of_cache(path_.caution());
    maker_->start(at.epoch, at.batch, check_interrupt);
    bad_records_.begin_epoch(at.bad_records);
    position_.begin_iteration(made());
    started_ = true;
  }

  std::optional<Batch> next(const InterruptCheck& check_interrupt) {
    position_.remember();
    if (started_ && !maker_->delivers()) started_ = false;
    if (!started_) begin(check_interrupt);
    std::optional<Batch> batch;
    do {
      try {
        batch = maker_->next(check_interrupt);
      } catch (const Exception&) {
        not_received(check_interrupt);
        throw;
      } catch (const std::bad_alloc&) {
        not_received(check_interrupt);
        throw;
      }
      try {
        warnings_.ignored_orientations(delivered().remarks.exif_ignored);
        warnings_.left_to_cpu(placement_, options(), !batch);
      } catch (...) {
        not_received(check_interrupt);
        throw;
      }
      // From the end of one call to the end of the next: what the consumer does is part of the
      // iteration.
      const double time = now();
      wall_seconds_ = wall_seconds_ + time - std::exchange(last_next_, time);
      if (!batch) {
        end_epoch(check_interrupt);
        path_.keep();
        return std::nullopt;
      }
      position_.receive(*batch, bad_records_.in_epoch());
    } while (batch->size == 0);  // every record of it was skipped
    return batch;
  }

  void end_epoch(const InterruptCheck& check_interrupt) {
    const Position::Place at = position_.place();
    if (!at.received && at.bad_records > 0) {
      halt(check_interrupt);
      throw Exception(no_records_left(at));
    }
    // If a warning throws, the next call reaches the end again.
    warnings_.repaired(position_.take_repaired(made()), at.epoch);
    set_epoch(at.epoch + 1, check_interrupt);
  }

  Error no_records_left(const Position::Place& at) const {
    Error error{.code = &kNothingLeft,
                .what = "all " + std::to_string(at.bad_records) + " records of epoch " +
                        std::to_string(at.epoch) + " are bad, and on_error=\"skip\" skipped them",
                .hint = "`headrace scan` lists the error of each record"};
    if (const std::vector<BadRecord> all = bad_records_.list(); !all.empty())
      error.note = "the last one: " + all.back().error.what + " (" + all.back().key + ")";
    return error;
  }

  // The next call tries again.
  void not_received(const InterruptCheck& check_interrupt) {
    halt(check_interrupt);
    position_.fail(bad_records_.in_epoch());
  }
  void take_back() {
    started_ = false;
    position_.take_back();
  }

  void set_epoch(int64_t epoch, const InterruptCheck& check_interrupt) {
    if (epoch < 0) {
      raise(kBadLoaderOption, "epoch must not be negative (got " + std::to_string(epoch) + ")");
    }
    halt(check_interrupt);
    position_.begin_epoch(epoch);
  }
  void restart(const InterruptCheck& check_interrupt) {
    const Position::Place at = position_.place();
    set_epoch(at.batch > 0 ? at.epoch + 1 : at.epoch, check_interrupt);
  }
  void load_state(const LoaderState& state, const InterruptCheck& check_interrupt) {
    position_.check(state);
    halt(check_interrupt);
    if (state.seed != position_.seed()) maker_->reseed(state.seed);
    position_.load(state);
  }

  DeliveredCounts made() const { return maker_->stats(); }
  DeliveredCounts delivered() const { return position_.delivered(made()); }
  LoaderMark mark() const { return position_.mark(made()); }
  void go_back(const LoaderMark& mark) {
    load_state(mark.state, {});
    position_.go_back(mark, made());
  }

  Batch make(int64_t epoch, int64_t index) {
    check_batch(epoch, index);
    ask_for_order(epoch);
    return maker_->make(epoch, index);
  }
  RowsResult make_rows(const RowsRequest& rows, const BatchRows::Memory& memory) {
    check_batch(rows.epoch, rows.batch);
    const int64_t size = layout_.range(rows.batch).size(), group = plan_->batch_group();
    const int64_t end = int64_t{rows.first} + rows.count;
    if (rows.first < 0 || rows.count <= 0 || end > size || rows.first % group != 0 ||
        (end % group != 0 && end != size)) {
      raise(kOutOfRange, "rows [" + std::to_string(rows.first) + ", " + std::to_string(end) +
                             ") of batch " + std::to_string(rows.batch) + ", which has " +
                             std::to_string(size) + " in groups of " + std::to_string(group));
    }
    ask_for_order(rows.epoch);
    const std::shared_ptr<Engine> engine = maker_->engine_for_rows(true);
    if (!engine) raise(kBadLoaderOption, "resident=True: rows are not made one by one");
    return engine->make_rows(rows, memory);
  }
  // The engine that lends rows.
  std::shared_ptr<Engine> lender() const { return maker_->engine_for_rows(false); }

  std::vector<int64_t> indices(int64_t epoch, int64_t index) const {
    check_batch(epoch, index);
    std::vector<int64_t> out;
    const uint64_t seed = position_.seed();
    const BatchRange range = layout_.range(index);
    for (int64_t p = range.begin; p < range.end; ++p) {
      out.push_back(sampler_->index(seed, static_cast<uint64_t>(epoch), p % layout_.positions()));
    }
    return out;
  }

  LoaderStats stats() const {
    const MakerStats made = maker_->stats();
    LoaderStats out;
    static_cast<EngineStats&>(out) = made;
    static_cast<DeliveredCounts&>(out) = position_.delivered(made);
    out.row_index = path_.row_index();
    out.cache = path_.cache();
    out.disk_cache = path_.disk_cache();
    out.threads = options().threads;
    out.memory_limit = options().memory_limit;
    out.bad_records = bad_records_.total();
    out.wall_seconds = wall_seconds_;
    out.resident_bytes = made.resident_bytes;
    out.decoded = placement_.decoded();
    out.memory_used += path_.cache_bytes_used();
    out.memory_peak += path_.cache_bytes_used();
    return out;
  }

  std::string resolved(std::string_view option) const {
    if (option == "threads") {
      return std::to_string(options().threads) + " (" + resolved_.threads_origin + ")";
    }
    if (option == "memory_limit") {
      return std::to_string(options().memory_limit >> 20) + " MiB (" + resolved_.memory_origin +
             ")";
    }
    if (option == "row_index") return text_of(path_.row_index());
    if (option == "cache") return path_.cache_text();
    if (option == "resident") return maker_->resident_text();
    if (option == "finish") return placement_.finish_text();
    if (option == "decode") return placement_.decode_text();
    if (option == "decode_note") return placement_.left_to_cpu();
    if (option == "order") return sampler_->description();
    if (option == "workers") return placement_.why_not_lent();
    return {};
  }

  void halt(const InterruptCheck& check_interrupt) {
    started_ = false;
    maker_->stop(check_interrupt);
  }
  void close() {
    started_ = false;
    maker_->close();
    path_.keep();
  }

  const Plan& plan() const { return *plan_; }
  bool leaves_unfinished() const { return placement_.finishes_on_device(); }
  const LoaderOptions& options() const { return resolved_.options; }
  const BatchLayout& layout() const { return layout_; }
  double weight(int64_t index) const {
    check_batch(0, index);
    return layout_.weight(index);
  }
  int64_t epoch() const { return position_.place().epoch; }
  LoaderState state() const { return position_.state(); }
  std::vector<BadRecord> quarantine() const { return bad_records_.list(); }

 private:
  void check_batch(int64_t epoch, int64_t index) const {
    if (epoch >= 0 && index >= 0 && index < layout_.batches()) return;
    raise(kOutOfRange, "batch " + std::to_string(index) + " of epoch " + std::to_string(epoch) +
                           "; an epoch has " + std::to_string(layout_.batches()) + " batches");
  }

  const ResolvedOptions resolved_;
  const std::shared_ptr<const Plan> plan_;  // shared: batches in use outlive a closed loader
  WorkPlacement placement_;
  ReadPath path_;
  const SamplerPtr sampler_;
  const BatchLayout layout_;
  BadRecords bad_records_;
  Warnings warnings_;
  const std::unique_ptr<BatchMaker> maker_;
  Position position_;
  bool loaded_ = false;
  // stats() and stop_workers() are called by other threads, too.
  std::atomic<bool> started_ = false;
  std::atomic<double> wall_seconds_ = 0;
  double last_next_ = 0;
};

Loader::Loader(SourcePtr source, const Pipeline& pipeline, const LoaderOptions& options)
    : impl_(std::make_unique<Impl>(with_stored_forms(source, pipeline, options.plan), pipeline,
                                   options)) {}

// In a forked child nothing can be ended: the threads are the parent's, and locks may be held by
// them.
Loader::~Loader() {
  if (forked_from_running_engine()) (void)impl_.release();
}

void Loader::prepare() { impl_->prepare(); }
void Loader::take_back() { impl_->take_back(); }
LoaderMark Loader::mark() const { return impl_->mark(); }
void Loader::go_back(const LoaderMark& mark) { impl_->go_back(mark); }

std::optional<Batch> Loader::next(const std::function<void()>& check_interrupt) {
  try {
    return impl_->next(check_interrupt);
  } catch (const std::bad_alloc&) {
    throw Exception(error_from_current_exception());
  }
}
int64_t Loader::batches_per_epoch() const { return impl_->layout().batches(); }
double Loader::weight(int64_t batch) const { return impl_->weight(batch); }
void Loader::restart(const std::function<void()>& check_interrupt) {
  impl_->restart(check_interrupt);
}
void Loader::set_epoch(int64_t epoch, const std::function<void()>& check_interrupt) {
  impl_->set_epoch(epoch, check_interrupt);
}
int64_t Loader::epoch() const { return impl_->epoch(); }
LoaderState Loader::state() const { return impl_->state(); }
void Loader::load_state(const LoaderState& state, const std::function<void()>& check_interrupt) {
  impl_->load_state(state, check_interrupt);
}
bool Loader::load_resident(const std::function<void()>& check_interrupt) {
  return impl_->load_resident(check_interrupt);
}
Batch Loader::batch(int64_t epoch, int64_t index) { return impl_->make(epoch, index); }
RowsResult Loader::make_rows(const RowsRequest& rows, const BatchRows::Memory& memory) {
  return impl_->make_rows(rows, memory);
}
std::optional<LentRows> Loader::rows_ahead(int most, double patience_seconds) {
  const std::shared_ptr<Engine> engine = impl_->lender();
  return engine ? engine->rows_ahead(most, patience_seconds) : std::nullopt;
}
bool Loader::rows_arrived(int64_t number, RowsResult made, const RowBytes& bytes) {
  const std::shared_ptr<Engine> engine = impl_->lender();
  return engine && engine->rows_arrived(number, std::move(made), bytes);
}
void Loader::rows_returned(int64_t number) {
  if (const std::shared_ptr<Engine> engine = impl_->lender()) engine->rows_returned(number);
}
bool Loader::rows_are_out(int64_t number) const {
  const std::shared_ptr<Engine> engine = impl_->lender();
  return engine && engine->rows_are_out(number);
}
bool Loader::leaves_unfinished() const { return impl_->leaves_unfinished(); }
std::vector<int64_t> Loader::indices(int64_t epoch, int64_t index) const {
  return impl_->indices(epoch, index);
}
const Plan& Loader::plan() const { return impl_->plan(); }
const LoaderOptions& Loader::options() const { return impl_->options(); }
LoaderStats Loader::stats() const { return impl_->stats(); }
std::vector<BadRecord> Loader::quarantine() const { return impl_->quarantine(); }
std::string Loader::resolved(std::string_view option) const { return impl_->resolved(option); }
void Loader::stop_workers() { impl_->halt({}); }
void Loader::close() {
  if (!forked_from_running_engine()) impl_->close();
}

}  // namespace headrace
