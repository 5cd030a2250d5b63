// SPDX-License-Identifier: Apache-2.0
// What a worker does with a run of records whose pipeline has no Python step, and what all runs
// share.
#include <algorithm>

#include "headrace/base/clock.h"
#include "headrace/executor/caught_error.h"
#include "headrace/executor/engine.h"

namespace headrace {
namespace {

// Read buffers above this are given back, so that a worker keeps at most a group times as much.
constexpr size_t kKeptBuffer = size_t{256} << 10;
constexpr int kAttempts = 100;  // substitutes to try for one bad record

std::string substituted_by(int64_t index) {
  return "substituted by record " + std::to_string(index);
}

void note_attempts(RowFailure& failure) {
  failure.error.note += (failure.error.note.empty() ? "" : "; ") + std::string("and ") +
                        std::to_string(kAttempts) + " substitutes were bad as well";
}

}  // namespace

// Returns how many of the run's records are now settled that were not.
int Engine::process(RecordRun& run, Renderer& renderer) {
  if (has_python_steps_) return process_with_python(run, renderer);
  // A group is finished before the next begins, so a few places serve the run.
  for (int first = 0; first < run.rows && !stopping_;) {
    first += process_group(run, first, renderer);
  }
  for (InFlight& flight : run.flight) {  // one that a stop has left: its place is used again
    if (flight.state != InFlight::State::kBegun) continue;
    give_back(flight);
    flight.state = InFlight::State::kIdle;
  }
  return run.rows;
}

// What is thrown, memory that the system refuses above all, is the fault of the records at hand,
// not the end of the worker. REQUIRES: a catch block.
void Engine::fail_by_exception(RecordRun& run, int first, int count) {
  for (int i = first; i < first + count; ++i) {
    const InFlight& flight = run.flight[i];
    if (!flight.settled() && !flight.bad()) fail(run, i, error_from_current_exception());
  }
}

void Engine::begin_record(RecordRun& run, int i, Renderer& renderer, bool may_wait) {
  InFlight& flight = run.flight[i];
  flight.state = InFlight::State::kBegun;
  flight.step = 0;
  const bool timed = options_.task.source->read_style() != ReadStyle::kMemory;
  const double begin = timed ? now() : 0;
  const int row = run.first_row + i;
  flight.record.position = run.batch->builder.range().begin + row;
  flight.record.index =
      order_.record_at(run.batch->builder.epoch(), flight.record.position, flight.attempt);
  flight.record.attempt = flight.attempt;
  run.activity->begin(RunActivity::Kind::kReads, flight.record.index, begin);
  read_record(*run.batch, row, flight, may_wait);
  read_partners(*run.batch, row, flight);
  const double end = timed ? now() : 0;
  run.activity->begin(RunActivity::Kind::kMakes, flight.record.index, end);
  renderer.seconds().read += end - begin;
  if (!flight.data.result) return fail(run, i, std::move(flight.data.result.error()));
  Result<void> begun = options_.task.plan->begin(flight.data, flight.record, renderer);
  if (!begun) return fail(run, i, std::move(begun.error()));
  for (FieldValue& value : flight.record.fields) {
    value.video.decoding.stop = value.sound.decoding.stop = &stopping_;
  }
  int64_t blamed = -1;
  begun = begin_partners(flight.partners, flight.record, renderer, blamed);
  if (!begun) return fail(run, i, std::move(begun.error()), blamed);
}

void Engine::read_record(const OpenBatch& batch, int row, InFlight& flight, bool may_wait) {
  Record& record = flight.record;
  if (flight.attempt > 0) return read_ahead_.read_alone(record.index, flight.data);
  const int64_t sequence = (batch.first_sequence + row) * order_.reads_a_row();
  flight.lent =
      ReadLoan(read_ahead_, read_ahead_.fetch(sequence, record.index, flight.data, may_wait));
}

// The plan from there on, timed; what it renders on the way is counted as such already.
Result<int> Engine::apply_steps(int step, Record& record, Renderer& renderer, uint64_t epoch,
                                int end) {
  const auto rendered = [&] {
    const StageSeconds& seconds = renderer.seconds();
    return seconds.read + seconds.entropy + seconds.resample + seconds.store + seconds.transform;
  };
  const double begin = now(), before = rendered();
  Result<int> stopped =
      options_.task.plan->advance(step, record, renderer, options_.task.seed, epoch, end);
  renderer.seconds().transform += std::max(0.0, now() - begin - (rendered() - before));
  return stopped;
}

// To the end of the plan (kReady), to a Python step (kAtPython), or, where it goes together with
// others, to a step that asks for pixels (kBegun).
void Engine::advance_record(RecordRun& run, int i, Renderer& renderer, bool together) {
  InFlight& flight = run.flight[i];
  const Plan& plan = *options_.task.plan;
  const uint64_t epoch = static_cast<uint64_t>(run.batch->builder.epoch());
  int64_t blamed = -1;
  if (flight.step == 0) {
    const bool keeps = flight.attempt == 0;
    if (order_.is_near()) {
      Result<int> prepared = prepare(flight.record, renderer, epoch, keeps);
      if (!prepared) return fail(run, i, std::move(prepared.error()));
      flight.step = *prepared;
    }
    Result<void> ready =
        advance_partners(flight.partners, flight.record, renderer, epoch, keeps, blamed);
    if (!ready) return fail(run, i, std::move(ready.error()), blamed);
  }
  Result<int> stopped = [&] {
    const Collecting collecting(renderer, together ? &flight.requests : nullptr);
    return apply_steps(flight.step, flight.record, renderer, epoch);
  }();
  if (!stopped) return fail(run, i, std::move(stopped.error()));
  flight.step = *stopped;
  if (flight.requests.waits) return;
  flight.state = InFlight::State::kReady;
  if (flight.step == static_cast<int>(plan.steps().size())) return;
  Result<PythonCall> call =
      plan.python_call(flight.step, flight.record, renderer, options_.task.seed, epoch);
  if (!call) return fail(run, i, std::move(call.error()));
  flight.call = std::move(*call);
  flight.state = InFlight::State::kAtPython;
}

// Waits for the first record of a group; false where another one would have to.
bool Engine::reserve_early(RecordRun& run, int i) {
  InFlight& flight = run.flight[i];
  const size_t bytes = bytes_until_written(flight);
  if (gate_.refuses(bytes)) {
    fail(run, i, gate_.refusal(bytes));
    return true;
  }
  const int64_t sequence = run.batch->first_sequence + run.first_row + i;
  std::optional<GateHold> hold = i == 0 ? gate_.acquire(sequence, bytes) : gate_.try_acquire(bytes);
  if (hold) flight.reserved = std::move(*hold);
  return hold.has_value();
}

size_t Engine::bytes_until_written(const InFlight& flight) const {
  size_t bytes = record_bytes_.until_written(flight.record);
  for (const PartnerRead& partner : flight.partners) {
    if (partner.kept) bytes += partner.kept->reserved;
  }
  return bytes;
}

size_t Engine::bytes_to_write(const InFlight& flight) const {
  const size_t encoded = encoded_bytes(flight.data);
  return working_bytes(flight.record) + encoded - read_ahead_.counted(encoded);
}

void Engine::write_records(RecordRun& run, int first, int count, Renderer& renderer) {
  std::vector<RowSource>& sources = run.sources;
  sources.clear();
  size_t bytes = 0;
  for (int i = first; i < first + count; ++i) {
    InFlight& flight = run.flight[i];
    if (flight.settled() || flight.bad()) continue;
    if (!record_bytes_.asks_early()) {  // else it has what it needs
      const size_t whole = working_bytes(flight.record) + encoded_bytes(flight.data);
      if (gate_.refuses(whole)) {
        fail(run, i, gate_.refusal(whole));
        continue;
      }
      bytes += bytes_to_write(flight);
    }
    sources.push_back({.row = run.first_row + i, .record = &flight.record, .result = {}});
  }
  if (sources.empty()) return;
  {
    const int64_t sequence = run.batch->first_sequence + sources.front().row;
    std::optional<GateHold> hold = gate_.acquire(sequence, bytes);
    if (!hold) {  // each alone fits
      for (int i = first; i < first + count; ++i) write_records(run, i, 1, renderer);
      return;
    }
    run.batch->builder.write(sources, renderer, shares_.largest_listed);
  }
  int warnings = 0;
  size_t list_bytes = 0;
  for (RowSource& source : sources) {
    warnings += source.warnings;
    list_bytes += source.list_bytes;
    const int i = source.row - run.first_row;
    if (!source.result) {
      fail(run, i, std::move(source.result.error()));
    } else {
      settle(run, i);
    }
  }
  if (warnings == 0 && list_bytes == 0) return;
  MutexLock lock(mutex_);
  run.batch->warnings += warnings;
  run.batch->list_bytes += list_bytes;
  list_bytes_ += list_bytes;
  if (!has_lists_ || run.batch->list_bytes - run.batch->foreseen_bytes <= shares_.lists) return;
  run.batch->too_large = true;
  progress_.notify_all();
}

// Leaves the record settled; or bad, to be substituted when its group is done; or, with Python
// steps, ready to be begun again as a substitute.
void Engine::fail(RecordRun& run, int i, Error error, int64_t blamed) {
  InFlight& flight = run.flight[i];
  give_back(flight);
  const bool bad_record = is_bad_record(error);
  if (flight.failure.empty()) {
    flight.failure.push_back({.row = run.first_row + i,
                              .record = blamed >= 0 ? blamed : flight.record.index,
                              .error = std::move(error)});
  } else if (!bad_record) {
    flight.failure.front().error = std::move(error);  // no substitute can be read at all
  }
  RowFailure& failure = flight.failure.front();
  if (!bad_record || options_.task.on_error == OnError::kRaise) {
    failure.fatal = true;
  } else if (options_.task.on_error == OnError::kSkip) {
    run.batch->builder.drop(failure.row);
    failure.action = "skipped";
  } else if (has_python_steps_ && flight.attempt < kAttempts) {
    ++flight.attempt;
    flight.state = InFlight::State::kIdle;
    return;
  } else if (!has_python_steps_) {
    flight.state = InFlight::State::kBad;
    return;
  } else {
    failure.fatal = true;
  }
  settle(run, i);
}

// Allocates before it changes anything: what is refused here leaves the record unsettled, to be
// settled again.
void Engine::settle(RecordRun& run, int i) {
  InFlight& flight = run.flight[i];
  for (RowFailure& failure : flight.failure) {
    if (flight.attempt > 0 && !failure.fatal) failure.action = substituted_by(flight.record.index);
    if (flight.attempt == kAttempts && failure.fatal) note_attempts(failure);
  }
  give_back(flight);
  flight.state = InFlight::State::kSettled;
  flight.attempt = 0;
  if (flight.failure.empty()) return;
  const RowFailure& failure = flight.failure.front();
  if (failure.fatal) run.batch->builder.drop(failure.row);  // it holds anything
  MutexLock lock(mutex_);
  run.batch->failures.splice(run.batch->failures.end(), flight.failure);
}

// What a record holds, as far as it is not small enough to be kept for the next one.
void Engine::give_back(InFlight& flight) {
  flight.reserved.release();
  flight.requests.clear();
  flight.call.reset();
  size_t largest = 0;
  flight.data.each_buffer([&](Buffer& buffer) { largest = std::max(largest, buffer.capacity()); });
  for (FieldValue& value : flight.record.fields) {
    if (record_bytes_.asks_early()) value.picture = Recipe();
    value.frame.reset();
    value.video = {};
    value.sound = {};
    if (record_bytes_.asks_early() || (value.owned && value.owned->capacity() > kKeptBuffer))
      value.owned.reset();
  }
  for (auto& picture : flight.record.pixels) {
    if (picture && picture->pixels.capacity() > kKeptBuffer) picture.reset();
  }
  flight.lent.give_back();
  if (largest > (has_python_steps_ ? 0 : kKeptBuffer)) read_ahead_.take_back(flight.data);
  flight.partners.clear();
  flight.record.partners.clear();
  ++freed_;
}

// A substitute is tried with all that the worker has, when no other record of the group holds
// memory; with Python steps, where some may, it takes the usual way instead (fail).
bool Engine::substitute(OpenBatch& batch, int row, RowFailure& failure, Renderer& renderer) {
  for (int attempt = 1; attempt <= kAttempts; ++attempt) {
    const int64_t index =
        order_.record_at(batch.builder.epoch(), batch.builder.range().begin + row, attempt);
    int64_t blamed = -1;
    Result<void> made = make_row(batch, row, attempt, renderer, blamed);
    if (made) {
      failure.action = substituted_by(index);
      return true;
    }
    if (is_bad_record(made.error())) continue;
    failure.error = std::move(made.error());
    return false;
  }
  note_attempts(failure);
  return false;
}

}  // namespace headrace
