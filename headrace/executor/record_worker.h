// SPDX-License-Identifier: Apache-2.0
// One thread's work on records: reads them, takes them through the pipeline together with their
// partners, and writes them into the given rows; a bad one is an error, skipped or substituted, as
// on_error says. It knows no other thread and no batch beyond its rows, so it may run anywhere:
// everything shared with others (memory, reads, calls into Python) is borrowed.
//
// A row's way: begin (read, open) -> reserve -> advance (steps) -> write -> settle; or fail, from
// any of these. Without Python steps rows go in groups (Note [Pixels together]); with them each
// goes on by itself as far as it comes, and the run is left to the thread that calls Python.
//
// Note [Pixels together]: a step that looks at pixels would decode its own record's picture alone.
// So each record of the group goes to the first step that asks for one, and stands before it again;
// what was asked for (PixelRequests) is decoded together, all views of a record at once; then each
// record does that step again, and its requests are answered. A step draws the same each time, so
// it asks for the same.
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

// Calls a Python step for records that stand there.
class PythonCalls {
 public:
  virtual ~PythonCalls() = default;
  virtual void call(int step, std::span<PythonCall* const> calls) = 0;
};

// Lent to a worker, thread-safe.
struct RecordMeans {
  MemoryGate& gate;
  ReadAhead& reads;
  KeptPartners& kept;
  PythonCalls& python;
  std::atomic<uint64_t>& freed;   // counts records that gave memory back
  const std::atomic<bool>& stop;  // rows that have not begun need not begin
};

// Limits above which records are too large: part of the task's result, the same on any machine.
struct RecordLimits {
  size_t record = SIZE_MAX;  // working memory
  size_t listed = SIZE_MAX;  // one image in a list
};

class RecordWorker {
 public:
  // All of them outlive it.
  RecordWorker(const RowTask& task, const RecordOrder& order, const RecordBytes& bytes,
               RecordLimits limits, RecordMeans means);

  // Once per run, before the thread's renderer is used.
  void prepare(Renderer& renderer) const;
  // Takes the run on by a group of rows; with Python steps, by all of them as far as they come, and
  // stops early to report on a list. What came of it is in the run's report.
  Stands advance(RecordRun& run, Renderer& renderer) const;
  // Runs the batch steps on whole groups of rows, by whichever worker they were written.
  void mix(RecordRun& run, MixGroup group, Renderer& renderer) const;
  // Makes the rows one by one on this thread, calling Python where a step wants it. Ends at a row
  // whose failure is fatal.
  RowsReport fill(const Rows& rows, BatchBuilder& to, Renderer& renderer) const;

 private:
  using State = InFlight::State;
  void announce(const Rows& rows) const;

  // Groups.
  Stands next_group(RecordRun& run, Renderer& renderer) const;
  int begin_group(RecordRun& run, Renderer& renderer) const;
  void advance_group(RecordRun& run, std::span<InFlight> group, Renderer& renderer) const;

  // Runs with Python steps.
  Stands sweep(RecordRun& run, Renderer& renderer) const;
  void go_on(RecordRun& run, InFlight& flight, Renderer& renderer) const;
  void return_from_python(RecordRun& run, InFlight& flight) const;

  // One row, all the way on this thread.
  void make_alone(RecordRun& run, InFlight& flight, Renderer& renderer) const;
  void substitute(RecordRun& run, InFlight& flight, Renderer& renderer) const;

  // A row's way.
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
