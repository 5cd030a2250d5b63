// SPDX-License-Identifier: Apache-2.0
#include "headrace/loader/work_placement.h"

#include <algorithm>
#include <utility>

#include "headrace/executor/decode_trial.h"
#include "headrace/executor/memory/memory_shares.h"
#include "headrace/finish/coded_rows.h"
#include "headrace/finish/device_work.h"
#include "headrace/loader/resident_batches.h"
#include "headrace/loader/streaming_batches.h"

namespace headrace {

WorkPlacement::WorkPlacement(const LoaderOptions& options, const Plan& plan, SourcePtr source)
    : options_(options),
      plan_(plan),
      source_(std::move(source)),
      question_{.use = options.decode,
                .finish = options.finish,
                .device = options.device.get(),
                .encoded = std::ranges::any_of(source_->schema(), &Field::encoded),
                .strict = options.plan.strict},
      decode_(choose_decode(question_)),
      finish_(choose_finish(plan, options.finish,
                            options.device ? options.device->name() : std::string(),
                            decode_.on_device)) {}

std::unique_ptr<BatchMaker> WorkPlacement::maker(EngineOptions engine,
                                                 std::unique_ptr<Residence> residence,
                                                 BadRecords& bad_records) {
  const size_t memory_limit = engine.memory_limit;
  RowTask& task = engine.task;
  decode_ = choose_decode(question_, finish_);
  task.decoding = decoding_;
  task.left = {finish_.places, decode_.on_device ? finish_.decodable : std::vector<bool>()};
  engine.memory_limit = memory_limit - residence->bytes();
  divide(engine, {});
  if (finish_.any() && residence->is_on()) {
    leave_nothing("with resident: where batches are sliced", task);
  }
  if (decode_.on_device && finish_.any()) place_decoding(engine);
  if (finish_.any()) place_finish(engine);
  engine.memory_limit = memory_limit;
  if (options_.lends) {
    not_lent_ = residence->is_on() ? "resident= makes batches" : headrace::why_not_lent(task);
    engine.lends = not_lent_.empty();
  }
  if (residence->is_on()) {
    return std::make_unique<ResidentBatches>(std::move(residence), std::move(engine), bad_records);
  }
  return std::make_unique<StreamingBatches>(std::move(engine), bad_records, residence->text());
}

void WorkPlacement::place_decoding(EngineOptions& engine) {
  DeviceWork& left = engine.task.left;
  left.coded_row = coded_row_bytes(*source_, plan_);
  if (left.coded_row > CodedRows::kUsualRow && !fits(engine, left)) {
    left.coded_row = CodedRows::kUsualRow;
  }
  if (options_.decode == DecodeUse::kAuto) try_device(engine.task);
  if (!decode_.on_device || !finish_.any()) return;
  if (options_.decode == DecodeUse::kDevice) {
    divide(engine, left);
  } else if (!fits(engine, left)) {
    decode_ = {false, "cpu: memory_limit has no room for coded bytes"};
    left.decoded.clear();
  }
}

void WorkPlacement::place_finish(EngineOptions& engine) {
  if (options_.finish == FinishUse::kDevice || finish_.asked) {
    divide(engine, engine.task.left);
  } else if (!fits(engine, engine.task.left)) {  // no room for finished rows as well
    leave_nothing("cpu: memory_limit has no room for both forms of a batch", engine.task);
  }
}

// Throws Exception HR0702 if the engine's memory is too small for this.
void WorkPlacement::divide(const EngineOptions& engine, const DeviceWork& left) const {
  const ReadStyle style = engine.task.source->read_style();
  divide_memory(engine.memory_limit, {.plan = plan_,
                                      .rows = engine.task.layout.rank_batch(),
                                      .left = left,
                                      .threads = engine.threads,
                                      .reads_ahead = style != ReadStyle::kMemory,
                                      .reads_far = style == ReadStyle::kLater});
}

bool WorkPlacement::fits(const EngineOptions& engine, const DeviceWork& left) const {
  try {
    divide(engine, left);
  } catch (const Exception&) {
    return false;
  }
  return true;
}

// Leaves decoding to the CPU if the device could decode too few of the sampled pictures.
void WorkPlacement::try_device(RowTask& task) {
  decode_ = choose_decode(decode_, DecodedShare(trial_decode_counts(task)), index_hint());
  if (decode_.on_device) return;
  finish_ = choose_finish(plan_, options_.finish, options_.device->name());
  task.left = {finish_.places};
}

void WorkPlacement::leave_nothing(const std::string& why, RowTask& task) {
  finish_ = {{}, why};
  if (decode_.on_device) decode_ = {false, "cpu: " + why};
  task.left = {};
}

std::string WorkPlacement::index_hint() const {
  if (options_.row_index == RowIndexUse::kOff) return "index=False disables it";
  return "create one with `headrace index PATH` or hr.index(source)";
}

std::string WorkPlacement::left_to_cpu() const {
  return decode_.on_device ? DecodedShare(decoded()).text(index_hint()) : std::string();
}

}  // namespace headrace
