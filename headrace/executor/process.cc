// SPDX-License-Identifier: Apache-2.0
// What a worker does with a run of records, and the host thread with those that wait for it.
#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <new>

#include "headrace/base/registry.h"
#include "headrace/executor/engine.h"

namespace headrace {
namespace {

// Records that are decoded side by side; a decoder with several lanes profits from it.
constexpr int kGroup = 4;
constexpr int kAttempts = 100;  // substitutes to try for one bad record
// Pictures that wait at a host step are held as planes, at most as float32.
constexpr size_t kHostFactor = 4;
constexpr size_t kKeptBuffer = 4 << 20;  // read buffers above this are given back

constexpr ErrorCode kRecordTooLarge{
    "HR0703", ErrorKind::kResource, "record needs more than the memory limit leaves",
    "Decoding this record needs more working memory than memory_limit leaves beside batches and "
    "threads. Raise memory_limit, or let on_error= leave such records out."};
const Register<ErrorCode> registered(kRecordTooLarge);

constexpr ErrorCode kOutOfMemory{"HR0704", ErrorKind::kResource, "out of memory",
                                 "The system refused memory for this record although memory_limit "
                                 "allows it: other processes or a "
                                 "container's limit leave less than the loader was told it may "
                                 "use. Lower memory_limit or threads."};
const Register<ErrorCode> registered_out_of_memory(kOutOfMemory);

const uint64_t kSubstituteKey = hash_name("substitute");

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

size_t encoded_bytes(const RecordData& data) {
  size_t bytes = 0;
  for (const Buffer& buffer : data.owned) bytes += buffer.size();
  return bytes;
}

Error too_large(size_t bytes, size_t limit) {
  return {.code = &kRecordTooLarge,
          .what = "needs " + std::to_string((bytes >> 20) + 1) +
                  " MiB of working memory, memory_limit leaves " + std::to_string(limit >> 20) +
                  " MiB"};
}

size_t picture_bytes(const Recipe& recipe) {
  const Size size = recipe.size();
  return size_t(size.height) * size.width * recipe.channels();
}

}  // namespace

int Engine::process(RecordRun& run, Renderer& renderer) {
  // Without host steps a group is finished before the next begins, so a few places serve the run.
  const int places = has_host_steps_ ? run.rows : std::min(run.rows, kGroup);
  if (static_cast<int>(run.flight.size()) < places) run.flight.resize(places);
  int settled = 0;
  if (!has_host_steps_) {
    for (int first = 0; first < run.rows; first += kGroup) {
      process_group(run, first, std::min(kGroup, run.rows - first), renderer);
    }
    return run.rows;
  }
  for (int i = 0; i < run.rows; ++i) {
    InFlight& flight = run.flight[i];
    if (flight.step != 0 && !flight.at_host) continue;  // settled in an earlier round
    guard(run, i, 1, renderer, [&] { process_with_host(run, i, renderer); });
    settled += flight.settled;
  }
  if (std::none_of(run.flight.begin(), run.flight.begin() + run.rows,
                   [](const InFlight& flight) { return flight.at_host; })) {
    for (int i = 0; i < run.rows; ++i) run.flight[i].step = 0;
  }
  return settled;
}

// From the beginning, or from the host step at which the record waited, to the next one or the end.
void Engine::process_with_host(RecordRun& run, int i, Renderer& renderer) {
  InFlight& flight = run.flight[i];
  if (flight.at_host) {
    flight.at_host = false;
    HostCall call = std::move(*flight.call);
    flight.call.reset();
    if (!call.result) return fail(run, i, std::move(call.result.error()), renderer);
    Result<void> returned = options_.plan->host_return(flight.step, call, flight.record);
    if (!returned) return fail(run, i, std::move(returned.error()), renderer);
    ++flight.step;
  } else {
    begin_record(run, i, renderer);
  }
  if (!flight.settled) advance_record(run, i, renderer);
  if (!flight.settled && !flight.at_host) write_records(run, i, 1, renderer);
}

// Memory that the system refuses is the fault of the records at hand, not the end of the worker.
template <class Work>
void Engine::guard(RecordRun& run, int first, int count, Renderer& renderer, Work&& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    for (int i = first; i < first + count; ++i) {
      if (!run.flight[i].settled) {
        fail(run, i, {.code = &kOutOfMemory, .what = "the system refused memory"}, renderer);
      }
    }
  }
}

void Engine::process_group(RecordRun& run, int first, int count, Renderer& renderer) {
  RecordRun group{run.batch, run.first_row + first, count, std::move(run.flight)};
  for (int i = 0; i < count; ++i) {
    guard(group, i, 1, renderer, [&] {
      begin_record(group, i, renderer);
      if (!group.flight[i].settled) advance_record(group, i, renderer);
    });
  }
  guard(group, 0, count, renderer, [&] { write_records(group, 0, count, renderer); });
  run.flight = std::move(group.flight);
}

void Engine::begin_record(RecordRun& run, int i, Renderer& renderer) {
  InFlight& flight = run.flight[i];
  OpenBatch& batch = *run.batch;
  const int row = run.first_row + i;
  flight.settled = flight.at_host = false;
  flight.step = 0;
  flight.record.position = batch.builder.range().begin + row;
  flight.record.index = index_at(batch.builder.epoch(), flight.record.position);
  const bool timed = options_.source->read_style() != ReadStyle::kMemory;
  const double begin = timed ? now() : 0;
  read_ahead_.fetch(batch.first_sequence + row, flight.record.index, flight.data);
  if (timed) renderer.seconds().read += now() - begin;
  if (!flight.data.result) return fail(run, i, std::move(flight.data.result.error()), renderer);
  Result<void> begun = options_.plan->begin(flight.data, flight.record, renderer);
  if (!begun) return fail(run, i, std::move(begun.error()), renderer);
  if (!has_host_steps_) return;
  // Everything up to the end is reserved now: while it waits at a host step a record must not ask
  // for more.
  size_t bytes = encoded_bytes(flight.data);
  for (const FieldValue& value : flight.record.fields) {
    bytes += Renderer::working_bytes(value.picture) + kHostFactor * picture_bytes(value.picture);
  }
  std::optional<GateHold> hold = gate_.acquire(batch.first_sequence + row, bytes);
  if (!hold) return fail(run, i, too_large(bytes, gate_.limit()), renderer);
  flight.reserved = std::move(*hold);
}

void Engine::advance_record(RecordRun& run, int i, Renderer& renderer) {
  InFlight& flight = run.flight[i];
  const Plan& plan = *options_.plan;
  const uint64_t epoch = static_cast<uint64_t>(run.batch->builder.epoch());
  Result<int> stopped = plan.advance(flight.step, flight.record, renderer, options_.seed, epoch);
  if (!stopped) return fail(run, i, std::move(stopped.error()), renderer);
  flight.step = *stopped;
  if (flight.step == static_cast<int>(plan.steps().size())) return;
  Result<HostCall> call =
      plan.host_call(flight.step, flight.record, renderer, options_.seed, epoch);
  if (!call) return fail(run, i, std::move(call.error()), renderer);
  flight.call = std::move(*call);
  flight.at_host = true;
}

size_t Engine::bytes_to_write(const InFlight& flight) const {
  size_t bytes = encoded_bytes(flight.data);
  for (const FieldValue& value : flight.record.fields)
    bytes += Renderer::working_bytes(value.picture);
  return bytes;
}

void Engine::write_records(RecordRun& run, int first, int count, Renderer& renderer) {
  std::array<RowSource, kGroup> rows;
  std::array<int, kGroup> place;
  int n = 0;
  size_t bytes = 0;
  for (int i = first; i < first + count; ++i) {
    InFlight& flight = run.flight[i];
    if (flight.settled) continue;
    place[n] = i;
    rows[n++] = {run.first_row + i, &flight.record, {}, 0};
    if (!has_host_steps_) bytes += bytes_to_write(flight);  // else it reserved when it began
  }
  if (n == 0) return;
  {
    const int64_t sequence = run.batch->first_sequence + run.first_row + place[0];
    std::optional<GateHold> hold = gate_.acquire(sequence, bytes);
    if (!hold && n == 1) return fail(run, place[0], too_large(bytes, gate_.limit()), renderer);
    if (!hold) {
      for (int k = 0; k < n; ++k) write_records(run, place[k], 1, renderer);
      return;
    }
    run.batch->builder.write({rows.data(), static_cast<size_t>(n)}, renderer);
  }
  int warnings = 0;
  for (int k = 0; k < n; ++k) {
    InFlight& flight = run.flight[place[k]];
    warnings += rows[k].warnings;
    if (!rows[k].result) {
      fail(run, place[k], std::move(rows[k].result.error()), renderer);
      continue;
    }
    flight.settled = true;
    flight.reserved.release();
    for (Buffer& buffer : flight.data.owned) {
      if (buffer.capacity() > kKeptBuffer) buffer.free();
    }
  }
  if (warnings == 0) return;
  MutexLock lock(mutex_);
  run.batch->warnings += warnings;
}

void Engine::fail(RecordRun& run, int i, Error error, Renderer& renderer) {
  InFlight& flight = run.flight[i];
  flight.reserved.release();
  RowFailure failure{
      .row = run.first_row + i, .record = flight.record.index, .error = std::move(error)};
  if (!is_bad_record(failure.error) || options_.on_error == OnError::kRaise) {
    failure.fatal = true;
  } else if (options_.on_error == OnError::kSkip) {
    run.batch->builder.drop(failure.row);
    failure.action = "skipped";
  } else {
    failure.fatal = !substitute(*run.batch, failure.row, failure, renderer);
  }
  flight.settled = true;
  flight.at_host = false;
  flight.step = 1;  // "not to be begun again" while the run is under way
  MutexLock lock(mutex_);
  run.batch->failures.push_back(std::move(failure));
}

bool Engine::substitute(OpenBatch& batch, int row, RowFailure& failure, Renderer& renderer) {
  const uint64_t position = static_cast<uint64_t>(batch.builder.range().begin + row);
  const uint64_t epoch = static_cast<uint64_t>(batch.builder.epoch());
  for (uint64_t attempt = 1; attempt <= kAttempts; ++attempt) {
    Draws draws(options_.seed, epoch, position, mix64(kSubstituteKey, attempt));
    const int64_t index = index_at(batch.builder.epoch(), draws.below(options_.layout.positions()));
    if (!make_row(batch, row, index, renderer)) continue;
    failure.action = "substituted by record " + std::to_string(index);
    return true;
  }
  failure.error.note += (failure.error.note.empty() ? "" : "; ") + std::string("and ") +
                        std::to_string(kAttempts) + " substitutes were bad as well";
  return false;
}

Result<void> Engine::make_row(OpenBatch& batch, int row, int64_t index, Renderer& renderer) {
  const Plan& plan = *options_.plan;
  const uint64_t epoch = static_cast<uint64_t>(batch.builder.epoch());
  RecordData data;
  options_.source->read({&index, 1}, plan.wanted(), {&data, 1});
  if (!data.result) return std::move(data.result.error());
  Record record;
  record.index = index;
  record.position = batch.builder.range().begin + row;
  if (Result<void> begun = plan.begin(data, record, renderer); !begun) return begun;
  for (int step = 0;;) {
    Result<int> stopped = plan.advance(step, record, renderer, options_.seed, epoch);
    if (!stopped) return std::move(stopped.error());
    step = *stopped;
    if (step == static_cast<int>(plan.steps().size())) break;
    if (Result<void> called = call_host_inline(step, record, epoch, renderer); !called)
      return called;
    ++step;
  }
  size_t bytes = 0;
  for (const FieldValue& value : record.fields) bytes += Renderer::working_bytes(value.picture);
  const std::optional<GateHold> hold = gate_.acquire(batch.first_sequence + row, bytes);
  if (!hold) return too_large(bytes, gate_.limit());
  RowSource source{row, &record, {}, 0};
  batch.builder.write({&source, 1}, renderer);
  return std::move(source.result);
}

Result<void> Engine::call_host_inline(int step, Record& record, uint64_t epoch,
                                      Renderer& renderer) {
  Result<HostCall> call = options_.plan->host_call(step, record, renderer, options_.seed, epoch);
  if (!call) return std::move(call.error());
  HostCall* pointer = &*call;
  {
    MutexLock lock(host_mutex_);
    options_.plan->steps()[step].function->call({&pointer, 1});
  }
  if (!call->result) return std::move(call->result.error());
  return options_.plan->host_return(step, *call, record);
}

bool Engine::host_work(Renderer&) {
  std::vector<std::unique_ptr<RecordRun>> runs;
  {
    MutexLock lock(mutex_);
    runs.swap(at_host_);
  }
  if (runs.empty()) return false;
  const double begin = now();
  std::map<int, std::vector<HostCall*>> by_step;
  for (auto& run : runs) {
    for (int i = 0; i < run->rows; ++i) {
      InFlight& flight = run->flight[i];
      if (flight.at_host) by_step[flight.step].push_back(&*flight.call);
    }
  }
  for (auto& [step, calls] : by_step) {
    MutexLock lock(host_mutex_);
    options_.plan->steps()[step].function->call(calls);
  }
  {
    MutexLock lock(mutex_);
    stats_.stages.host += now() - begin;
    for (auto& run : runs) continued_.push_back(std::move(run));
  }
  ThreadPool::workers().wake();
  return true;
}

}  // namespace headrace
