// SPDX-License-Identifier: Apache-2.0
// One thread's work on records: reads them, takes them through the pipeline together with their
// partners, and writes them into the given rows; a bad record is an error, skipped or substituted,
// as specified by on_error. It does not depend on other threads, or on the batch beyond its rows,
// so it can run anywhere: everything shared with others (memory, reads, calls into Python) is
// passed in.
//
// Stages of a row: begin (read, open) -> reserve -> advance (steps) -> write -> settle; or fail,
// from any of these. Without Python steps, rows are processed in groups (Note [Pixels together]);
// with them, each row advances on its own as far as it can, and the run is then passed to the
// thread that calls Python.
//
// Note [Pixels together]: a step that reads pixels would decode only its own record's picture. So
// each record of the group runs up to the first step that requests pixels, and is restored to the
// state before that step; the requested pictures (PixelRequests) are decoded together, all views of
// a record at once; then each record runs that step again and gets what it requests. A step makes
// the same draws each time, so it makes the same requests.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/executor/memory/memory_gate.h"
#include "headrace/executor/partners.h"
#include "headrace/executor/record_run.h"
#include "headrace/sources/python_function.h"

namespace headrace {

// Calls a Python step for records that have reached it.
class PythonCalls {
 public:
  virtual ~PythonCalls() = default;
  virtual void call(int step, std::span<PythonCall* const> calls) = 0;
};

// Shared objects that a worker uses; thread-safe.
struct RecordMeans {
  MemoryGate& gate;
  ReadAhead& reads;
  PartnerCache& kept;
  PythonCalls& python;
  std::atomic<uint64_t>& freed;   // counts records that gave memory back
  const std::atomic<bool>& stop;  // once set, rows that have not begun need not begin
};

// Limits above which records are too large: part of the task's result, the same on any machine.
struct RecordLimits {
  size_t record = SIZE_MAX;  // working memory
  size_t listed = SIZE_MAX;  // one image in a list
};

class RecordWorker {
 public:
  // The referenced objects must outlive it.
  RecordWorker(const RowTask& task, const RecordOrder& order, const RecordBytes& bytes,
               RecordLimits limits, RecordMeans means);

  // Call once per run, before the thread's renderer is used.
  void prepare(Renderer& renderer) const;
  // Advances one group of the run's rows; with Python steps, all rows as far as possible, returning
  // early when memory of a list has to be reported. The results are in the run's report.
  RunOutcome advance(RecordRun& run, Renderer& renderer) const;
  // Runs the batch steps on complete groups of rows, which any workers may have written.
  void mix(RecordRun& run, MixGroup group, Renderer& renderer) const;
  // Makes the rows one by one on this thread, including calls to Python steps. Stops at the first
  // fatal failure.
  RowsReport fill(const Rows& rows, BatchBuilder& to, Renderer& renderer) const;

 private:
  using State = InFlight::State;
  void announce(const Rows& rows) const;

  // Groups.
  RunOutcome next_group(RecordRun& run, Renderer& renderer) const;
  int begin_group(RecordRun& run, Renderer& renderer) const;
  void advance_group(RecordRun& run, std::span<InFlight> group, Renderer& renderer) const;

  // Runs with Python steps.
  RunOutcome sweep(RecordRun& run, Renderer& renderer) const;
  void go_on(RecordRun& run, InFlight& flight, Renderer& renderer) const;
  void return_from_python(RecordRun& run, InFlight& flight) const;

  // One row, from reading to writing, on this thread.
  void make_alone(RecordRun& run, InFlight& flight, Renderer& renderer) const;
  void substitute(RecordRun& run, InFlight& flight, Renderer& renderer) const;

  // Stages of a row.
  void begin(RecordRun& run, InFlight& flight, Renderer& renderer, bool may_wait) const;
  void read(const Rows& rows, InFlight& flight, bool may_wait) const;
  bool reserve(RecordRun& run, InFlight& flight, bool may_wait) const;
  void advance(RecordRun& run, InFlight& flight, Renderer& renderer, bool together) const;
  void write(RecordRun& run, std::span<InFlight> flights, Renderer& renderer) const;
  void fail(RecordRun& run, InFlight& flight, Error error) const;
  void fail_by_exception(RecordRun& run, std::span<InFlight> flights) const;
  void settle(RecordRun& run, InFlight& flight) const;
  void give_back(InFlight& flight) const;

  const RowTask& task_;
  const RecordOrder& order_;
  const RecordBytes& bytes_;
  const RecordLimits limits_;
  const RecordMeans means_;
  const Partners partners_;
  const bool has_partners_, has_python_steps_;
};

}  // namespace headrace
