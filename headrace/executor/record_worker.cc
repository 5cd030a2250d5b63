// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/record_worker.h"

#include <algorithm>

#include "headrace/base/clock.h"
#include "headrace/executor/bad_records.h"
#include "headrace/executor/timed_steps.h"

namespace headrace {
namespace {

// Read buffers above this size are freed, so that a worker keeps at most this much per record of a
// group.
constexpr size_t kKeptBuffer = size_t{256} << 10;
constexpr int kAttempts = 100;  // substitutes to try for one bad record
// Number of records processed together if there is nothing to decode; otherwise the decoder's lanes
// determine it. Their encoded bytes are held at once, so large ones are processed alone.
constexpr int kGroup = 16;
constexpr size_t kGroupBytes = size_t{2} << 20;

// Adds to a report what the renderer counts during its lifetime.
class Reported {
 public:
  Reported(RowsReport& report, Renderer& renderer)
      : report_(report), renderer_(renderer), stages_(renderer.seconds()), begin_(now()) {}
  ~Reported() {
    report_.seconds += now() - begin_;
    report_.stages += renderer_.seconds() - stages_;
    report_.remarks += renderer_.take_remarks();
  }
  Reported(const Reported&) = delete;

 private:
  RowsReport& report_;
  Renderer& renderer_;
  const StageSeconds stages_;
  const double begin_;
};

std::string substituted_by(int64_t index) {
  return "substituted by record " + std::to_string(index);
}

void note_attempts(RowFailure& failure) {
  failure.error.note += (failure.error.note.empty() ? "" : "; ") + std::string("and ") +
                        std::to_string(kAttempts) + " substitutes were bad as well";
}

// Size of images delivered as tensors, and of values made by steps.
size_t copied_bytes(const Record& record) {
  size_t bytes = made_bytes(record);
  for (const auto& picture : record.pixels) bytes += picture ? picture->pixels.size() : 0;
  return bytes;
}

// How many records like this one should be processed together. Images that gain nothing from it are
// decoded one by one, while their bytes are in the cache.
int largest_group(const Record& record, Renderer& renderer) {
  int lanes = 0;
  for (const FieldValue& value : record.fields) {
    const int its = renderer.lanes(value.picture);
    if (its > 0) lanes = lanes > 0 ? std::min(lanes, its) : its;
  }
  return lanes > 0 ? lanes : kGroup;
}

// The size of the first of equal parts, so that no small part is left at the end.
int equal_part(int count, int most) {
  const int parts = (count + most - 1) / most;
  return (count + parts - 1) / parts;
}

}  // namespace

RecordWorker::RecordWorker(const RowTask& task, const RecordOrder& order, const RecordBytes& bytes,
                           RecordLimits limits, RecordMeans means)
    : task_(task),
      order_(order),
      bytes_(bytes),
      limits_(limits),
      means_(means),
      partners_(task, order, bytes, means.reads, means.kept, means.stop),
      has_partners_(order.partners() > 0),
      has_python_steps_(task.plan->has_python_steps()) {}

void RecordWorker::prepare(Renderer& renderer) const {
  renderer.allow_values(limits_.record);
  renderer.allow_pictures(std::max(limits_.record, bytes_.largest_image()));
}

RunOutcome RecordWorker::advance(RecordRun& run, Renderer& renderer) const {
  const Reported reported(run.report, renderer);
  if (!run.begun && run.rows.first == 0) announce(run.rows);
  return has_python_steps_ ? sweep(run, renderer) : next_group(run, renderer);
}

// Announces to the source the records of later batches, if the sampler knows their ranges.
void RecordWorker::announce(const Rows& rows) const {
  for (const RecordRange& range : order_.begun_by(rows.epoch, rows.batch, rows.sequence == 0)) {
    task_.source->will_read(range.begin, range.end, task_.plan->wanted());
  }
}

// --- Groups --------------------------------------------------------------------------------------

// A group is finished before the next begins, so a few InFlight objects suffice for the run.
RunOutcome RecordWorker::next_group(RecordRun& run, Renderer& renderer) const {
  run.begun = true;
  if (!means_.stop) {
    const int taken = begin_group(run, renderer);
    const std::span<InFlight> group = std::span(run.flight).first(size_t(taken));
    advance_group(run, group, renderer);
    try {
      write(run, group, renderer);
    } catch (const std::exception&) {
      fail_by_exception(run, group);
    }
    for (InFlight& flight : group) substitute(run, flight, renderer);
    // A record that found too little memory in addition to the others becomes the first of the next
    // group.
    if (std::ssize(run.flight) > taken && run.flight[taken].begun()) {
      std::swap(run.flight[0], run.flight[taken]);
    }
    run.taken += taken;
    if (run.taken < run.rows.count) return RunOutcome::kMore;
  }
  for (InFlight& flight : run.flight) {  // left over after a stop; the object is reused
    if (!flight.begun()) continue;
    give_back(flight);
    flight.state = State::kIdle;
  }
  run.report.settled += run.rows.count - run.taken;  // after a stop: the batch is dropped
  run.taken = 0;
  return RunOutcome::kDone;
}

// Begins records of a group. Only the first one may wait for memory, since it holds none. Returns
// their number.
int RecordWorker::begin_group(RecordRun& run, Renderer& renderer) const {
  const int left = run.rows.count - run.taken;
  int most = has_partners_ ? 1 : left;
  size_t bytes = 0;
  int count = 0;
  while (count < most && (count == 0 || (bytes < kGroupBytes && !means_.reads.is_full()))) {
    if (std::ssize(run.flight) <= count) run.flight.resize(size_t(count) + 1);
    InFlight& flight = run.flight[count];
    try {
      if (!flight.begun()) {
        flight.row = run.rows.first + run.taken + count;
        begin(run, flight, renderer, bytes_.reserves_early() ? count == 0 : bytes == 0);
      }
      if (flight.begun() && !reserve(run, flight, count == 0)) break;
    } catch (const std::exception&) {
      fail_by_exception(run, {&flight, 1});
    }
    ++count;
    bytes += flight.lent.bytes() + copied_bytes(flight.record);
    most = std::min(most, equal_part(left, largest_group(flight.record, renderer)));
  }
  return count;
}

// Advances the records until they can be written.
void RecordWorker::advance_group(RecordRun& run, std::span<InFlight> group,
                                 Renderer& renderer) const {
  const bool together = bytes_.reserves_early() && group.size() > 1;
  std::vector<Recipe*> asked_for;
  do {
    asked_for.clear();
    for (InFlight& flight : group) {
      if (!flight.going()) continue;
      try {
        advance(run, flight, renderer, together);
      } catch (const std::exception&) {
        fail_by_exception(run, {&flight, 1});
      }
      if (!flight.going()) continue;
      for (Recipe& picture : flight.requests.pictures) {
        if (!picture.pixels()) asked_for.push_back(&picture);
      }
    }
    renderer.materialize(asked_for);
  } while (!asked_for.empty());
}

void RecordWorker::mix(RecordRun& run, MixGroup group, Renderer& renderer) const {
  if (means_.stop) return;  // there are rows that were not written
  const Reported reported(run.report, renderer);
  const double begin = now();
  Result<void> done = run.to->run_batch_steps(group.first, group.count, task_.seed);
  renderer.seconds().transform += now() - begin;
  if (done) return;
  const int row = static_cast<int>(group.first);
  run.report.failures.push_back(
      {.row = row,
       .record = order_.index_at(run.rows.epoch, run.rows.position_of(row)),
       .error = std::move(done.error()),
       .fatal = true});
}

// --- Runs with Python steps ----------------------------------------------------------------------
//
// Here workers never wait for memory, since it might be held by records that only a worker can
// finish (Note [Why the memory limit cannot deadlock]); the run is suspended instead.

RunOutcome RecordWorker::sweep(RecordRun& run, Renderer& renderer) const {
  if (!run.begun) {
    if (std::ssize(run.flight) < run.rows.count) run.flight.resize(size_t(run.rows.count));
    for (int i = 0; i < run.rows.count; ++i) {
      run.flight[i].state = State::kIdle;
      run.flight[i].row = run.rows.first + i;
    }
    run.begun = true;
  }
  const std::span<InFlight> all = std::span(run.flight).first(size_t(run.rows.count));
  while (run.taken < run.rows.count) {
    InFlight& flight = all[size_t(run.taken++)];
    if (flight.settled() || (run.lacks_memory && !flight.at_python())) continue;
    try {
      go_on(run, flight, renderer);
    } catch (const std::exception&) {
      fail_by_exception(run, {&flight, 1});
    }
    run.lacks_memory |= !flight.settled() && !flight.at_python();
    // The sweep continues after this row, since a record that has just reached Python has not
    // returned.
    if (run.report.list_bytes > 0) return RunOutcome::kMore;
  }
  run.taken = 0;
  run.lacks_memory = false;
  if (std::ranges::any_of(all, &InFlight::at_python)) return RunOutcome::kAtPython;
  return std::ranges::all_of(all, &InFlight::settled) ? RunOutcome::kDone
                                                      : RunOutcome::kLacksMemory;
}

// Advances to the next Python step or the end, or until there is no memory. A record that fails is
// begun again as its substitute.
void RecordWorker::go_on(RecordRun& run, InFlight& flight, Renderer& renderer) const {
  if (means_.stop) return settle(run, flight);  // the batch will not be handed over
  if (flight.at_python()) return_from_python(run, flight);
  while (!means_.stop) {
    switch (flight.state) {
      case State::kIdle:
        if (means_.reads.is_full()) return;
        [[fallthrough]];
      case State::kBad:
        begin(run, flight, renderer, /*may_wait=*/false);
        break;
      case State::kBegun:
        if (!reserve(run, flight, /*may_wait=*/false)) return;
        break;
      case State::kGoing:
        advance(run, flight, renderer, /*together=*/false);
        break;
      case State::kAtEnd:
        write(run, {&flight, 1}, renderer);
        break;
      case State::kAtPython:
      case State::kSettled:
        return;
    }
  }
  // Stopped midway: otherwise the run would be suspended to wait for memory that is never freed.
  if (!flight.at_python() && !flight.settled()) settle(run, flight);
}

void RecordWorker::return_from_python(RecordRun& run, InFlight& flight) const {
  flight.state = State::kGoing;
  PythonCall call = std::move(*flight.call);
  flight.call.reset();
  if (!call.result) return fail(run, flight, std::move(call.result.error()));
  Result<void> returned = task_.plan->python_return(flight.step, call, flight.record);
  if (!returned) return fail(run, flight, std::move(returned.error()));
  ++flight.step;
}

// --- Rows one by one -----------------------------------------------------------------------------

RowsReport RecordWorker::fill(const Rows& rows, BatchBuilder& to, Renderer& renderer) const {
  RecordRun run;
  run.rows = rows;
  run.to = &to;
  InFlight& flight = run.flight.emplace_back();
  const Reported reported(run.report, renderer);
  for (int i = 0; i < rows.count; ++i) {
    flight.state = State::kIdle;
    flight.row = rows.first + i;
    make_alone(run, flight, renderer);
    substitute(run, flight, renderer);
    if (std::ranges::any_of(run.report.failures, &RowFailure::fatal)) break;
  }
  return std::move(run.report);
}

// REQUIRES: no other record of this thread holds memory.
void RecordWorker::make_alone(RecordRun& run, InFlight& flight, Renderer& renderer) const {
  begin(run, flight, renderer, /*may_wait=*/true);
  if (flight.begun()) reserve(run, flight, /*may_wait=*/true);
  while (flight.going() || flight.at_python()) {
    if (flight.going()) {
      advance(run, flight, renderer, /*together=*/false);
      continue;
    }
    PythonCall* const call = &*flight.call;
    means_.python.call(flight.step, {&call, 1});
    return_from_python(run, flight);
  }
  if (flight.at_end()) write(run, {&flight, 1}, renderer);
}

// The substitute of a bad record may use all memory of the worker, since no other record of its
// group holds any now; with Python steps, where others may hold memory, it is handled by go_on()
// instead.
void RecordWorker::substitute(RecordRun& run, InFlight& flight, Renderer& renderer) const {
  try {
    while (flight.bad()) make_alone(run, flight, renderer);
  } catch (const std::exception&) {
    RowFailure& failure = flight.failure.front();
    failure.error = error_from_current_exception();
    failure.fatal = true;
    settle(run, flight);
  }
}

// --- Stages of a row -----------------------------------------------------------------------------

void RecordWorker::begin(RecordRun& run, InFlight& flight, Renderer& renderer,
                         bool may_wait) const {
  flight.state = State::kBegun;
  flight.step = 0;
  flight.alone = flight.attempt > 0 || !run.rows.is_streamed();
  Record& record = flight.record;
  record.position = run.rows.position_of(flight.row);
  record.attempt = flight.attempt;
  record.index = order_.record_at(run.rows.epoch, record.position, flight.attempt);
  flight.blamed = record.index;
  const bool timed = task_.source->read_style() != ReadStyle::kMemory;
  const double begin = timed ? now() : 0;
  run.activity.begin(RunActivity::Kind::kReads, record.index, begin);
  read(run.rows, flight, may_wait);
  // Reads all of them, even if the row's own record is bad, since no other worker takes them from
  // the read-ahead.
  if (has_partners_) partners_.read(run.rows, flight);
  const double end = timed ? now() : 0;
  run.activity.begin(RunActivity::Kind::kMakes, record.index, end);
  renderer.seconds().read += end - begin;
  if (!flight.data.result) return fail(run, flight, std::move(flight.data.result.error()));
  Result<void> begun = task_.plan->begin(flight.data, record, renderer);
  if (!begun) return fail(run, flight, std::move(begun.error()));
  if (task_.left.decodes_any() && task_.decoding) mark_for_device(record, *task_.decoding);
  for (FieldValue& value : record.fields) {
    value.video.decoding.stop = value.audio.decoding.stop = &means_.stop;
  }
  if (has_partners_) begun = partners_.begin(flight, renderer);
  if (!begun) return fail(run, flight, std::move(begun.error()));
}

void RecordWorker::read(const Rows& rows, InFlight& flight, bool may_wait) const {
  const int64_t index = flight.record.index;
  const RowPosition row{.epoch = rows.epoch, .position = flight.record.position};
  if (flight.alone) return means_.reads.read_alone(index, flight.data, /*waited=*/0, row);
  const int64_t number = rows.sequence_of(flight.row) * order_.reads_a_row();
  flight.lent =
      ReadLoan(means_.reads, means_.reads.fetch(number, index, flight.data, may_wait, row));
}

// Reserves all memory that the record needs until it is written: a record that holds memory must
// not request more, especially while it waits at a Python step. False if the memory is not free
// now. If only writing needs memory, it is reserved then.
bool RecordWorker::reserve(RecordRun& run, InFlight& flight, bool may_wait) const {
  if (!bytes_.reserves_early()) {
    flight.state = State::kGoing;
    return true;
  }
  size_t bytes = bytes_.until_written(flight.record);
  for (const PartnerRead& partner : flight.partners) {
    if (partner.kept) bytes += partner.kept->reserved;
  }
  if (means_.gate.refuses(bytes)) {
    fail(run, flight, means_.gate.refusal(bytes));
    return true;
  }
  std::optional<GateHold> hold = may_wait
                                     ? means_.gate.acquire(run.rows.sequence_of(flight.row), bytes)
                                     : means_.gate.try_acquire(bytes);
  if (!hold) return false;
  flight.reserved = std::move(*hold);
  flight.state = State::kGoing;
  return true;
}

// Advances to the end of the plan (kAtEnd), to a Python step (kAtPython), or, if processed together
// with others, to a step that requests pixels (kGoing).
void RecordWorker::advance(RecordRun& run, InFlight& flight, Renderer& renderer,
                           bool together) const {
  const Plan& plan = *task_.plan;
  if (flight.step == 0 && has_partners_) {
    Result<void> ready = partners_.advance(run.rows, flight, renderer);
    if (!ready) return fail(run, flight, std::move(ready.error()));
  }
  Result<int> stopped = [&] {
    const Collecting collecting(renderer, together ? &flight.requests : nullptr);
    return advance_timed(task_, flight.step, flight.record, renderer, run.rows.epoch);
  }();
  if (!stopped) return fail(run, flight, std::move(stopped.error()));
  flight.step = *stopped;
  if (flight.requests.waits) return;
  if (flight.step == std::ssize(plan.steps())) {
    flight.state = State::kAtEnd;
    return;
  }
  Result<PythonCall> call = plan.python_call(flight.step, flight.record, renderer, task_.seed,
                                             static_cast<uint64_t>(run.rows.epoch));
  if (!call) return fail(run, flight, std::move(call.error()));
  flight.call = std::move(*call);
  flight.state = State::kAtPython;
}

// Writes those of the consecutive rows that are ready.
void RecordWorker::write(RecordRun& run, std::span<InFlight> flights, Renderer& renderer) const {
  std::vector<RowSource>& sources = run.sources;
  sources.clear();
  size_t bytes = 0;
  for (InFlight& flight : flights) {
    if (!flight.at_end()) continue;
    if (!bytes_.reserves_early()) {  // otherwise it has reserved what it needs
      const size_t encoded = encoded_bytes(flight.data);
      const size_t whole = working_bytes(flight.record) + encoded;
      if (means_.gate.refuses(whole)) {
        fail(run, flight, means_.gate.refusal(whole));
        continue;
      }
      bytes += whole - (flight.alone ? 0 : means_.reads.counted(encoded));  // lent with it
    }
    sources.push_back({.row = flight.row, .record = &flight.record, .result = {}});
  }
  if (sources.empty()) return;
  {
    std::optional<GateHold> hold =
        means_.gate.acquire(run.rows.sequence_of(sources.front().row), bytes);
    if (!hold) {  // each one alone fits
      for (InFlight& flight : flights) write(run, {&flight, 1}, renderer);
      return;
    }
    run.to->write(sources, renderer, limits_.listed);
  }
  for (RowSource& source : sources) {
    run.report.warnings += source.warnings;
    run.report.list_bytes += source.list_bytes;
    InFlight& flight = flights[size_t(source.row - flights.front().row)];
    if (!source.result) {
      fail(run, flight, std::move(source.result.error()));
    } else {
      settle(run, flight);
    }
  }
}

// Turns an exception, usually a failed allocation, into a failure of the current records instead of
// ending the worker. REQUIRES: a catch block.
void RecordWorker::fail_by_exception(RecordRun& run, std::span<InFlight> flights) const {
  for (InFlight& flight : flights) {
    if (flight.settled() || flight.bad()) continue;
    flight.blamed = flight.record.index;
    fail(run, flight, error_from_current_exception());
  }
}

// Marks the record as settled, or as bad, to be begun again as its substitute.
void RecordWorker::fail(RecordRun& run, InFlight& flight, Error error) const {
  give_back(flight);
  const bool bad_record = is_bad_record(error);
  if (flight.failure.empty()) {
    flight.failure.push_back(
        {.row = flight.row, .record = flight.blamed, .error = std::move(error)});
  } else if (!bad_record) {
    flight.failure.front().error = std::move(error);  // an error that affects substitutes too
  }
  RowFailure& failure = flight.failure.front();
  if (!bad_record || task_.on_error == OnError::kRaise) {
    failure.fatal = true;
  } else if (task_.on_error == OnError::kSkip) {
    run.to->drop(failure.row);
    failure.action = "skipped";
  } else if (flight.attempt < kAttempts) {
    ++flight.attempt;
    flight.state = State::kBad;
    return;
  } else {
    failure.fatal = true;
  }
  settle(run, flight);
}

// Allocates before it changes anything: if that fails, the record stays unsettled, to be settled
// again.
void RecordWorker::settle(RecordRun& run, InFlight& flight) const {
  for (RowFailure& failure : flight.failure) {
    if (flight.attempt > 0 && !failure.fatal) failure.action = substituted_by(flight.record.index);
    if (flight.attempt == kAttempts && failure.fatal && is_bad_record(failure.error)) {
      note_attempts(failure);
    }
  }
  give_back(flight);
  flight.state = State::kSettled;
  flight.attempt = 0;
  ++run.report.settled;
  if (flight.failure.empty()) return;
  const RowFailure& failure = flight.failure.front();
  if (failure.fatal) run.to->drop(failure.row);  // it holds memory
  run.report.failures.splice(run.report.failures.end(), flight.failure);
}

// Frees a record's memory, unless it is small enough to be kept for the next one.
void RecordWorker::give_back(InFlight& flight) const {
  flight.reserved.release();
  flight.requests.clear();
  flight.call.reset();
  for (FieldData& field : flight.data.fields) {
    field.file.reset();
    field.track.reset();
  }
  size_t largest = 0;
  flight.data.each_buffer([&](Buffer& buffer) { largest = std::max(largest, buffer.capacity()); });
  for (FieldValue& value : flight.record.fields) {
    if (bytes_.reserves_early()) value.picture = Recipe();
    value.frame.reset();
    value.video = {};
    value.audio = {};
    if (bytes_.reserves_early() || (value.owned && value.owned->capacity() > kKeptBuffer)) {
      value.owned.reset();
    }
  }
  for (auto& picture : flight.record.pixels) {
    if (picture && picture->pixels.capacity() > kKeptBuffer) picture.reset();
  }
  flight.lent.give_back();
  if (largest > (has_python_steps_ ? 0 : kKeptBuffer)) means_.reads.take_back(flight.data);
  flight.partners.clear();
  flight.record.partners.clear();
  ++means_.freed;
}

}  // namespace headrace
