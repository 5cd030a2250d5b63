// SPDX-License-Identifier: Apache-2.0
// A short run of consecutive rows of one batch: what a worker claims, and what waits for the
// thread of Python when the pipeline has a step written in Python.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/executor/batch/batch.h"
#include "headrace/executor/memory/kept_partners.h"
#include "headrace/executor/memory/memory_gate.h"
#include "headrace/executor/reading/read_ahead.h"

namespace headrace {

// A row that something went wrong with.
struct RowFailure {
  int row = 0;
  int64_t record = 0;
  Error error;
  std::string action = {};
  bool fatal = false;  // on_error does not apply, or every substitute was bad as well
};
// A list: an entry is handed over without an allocation, so nothing that the system refuses can
// come between giving up a row and reporting it.
using RowFailures = std::list<RowFailure>;

// A batch that is being filled.
struct OpenBatch {
  BatchBuilder builder;
  int64_t first_sequence = 0;  // of row 0 in the stream
  int claimed = 0, done = 0;   // rows; the engine's lock guards these and all below
  RowFailures failures = {};
  std::vector<int> unsettled = {};  // rows by group, where there are batch steps
  int64_t warnings = 0;
  PictureRemarks remarks = {};
  size_t list_bytes = 0;      // of fields delivered as lists, which have no slot
  size_t foreseen_bytes = 0;  // of these, what was foreseen
  bool too_large = false;     // these alone exceed the share for them
  // Note [Who makes the tensors of ragged fields]
  enum class Assembly : uint8_t { kNone, kUnderWay, kDone } assembly = Assembly::kNone;
  size_t assembled_bytes = 0;  // that they take, as soon as it is known
  std::exception_ptr assembly_error = {};

  bool filled() const { return done == builder.rows(); }
};

// What was read for a partner of a record (Note [Partner steps] in ops/op.h).
struct PartnerRead {
  RecordData data;
  ReadLoan lent;
  std::shared_ptr<const KeptPartner> kept =
      {};  // instead: it was there. shared: as KeptPartners says
};

// One record of a run, between being read and being written.
struct InFlight {
  // kIdle: to be read. kBegun: its header is read; its memory is perhaps not yet reserved, and it
  // may stand at a step that waits for pixels. kReady: may go on. kAtPython: it waits at a Python
  // step. kBad: another one shall stand in for it. kSettled: written, dropped or failed.
  enum class State : uint8_t { kIdle, kBegun, kReady, kAtPython, kBad, kSettled };
  State state = State::kIdle;
  RecordData data;
  ReadLoan lent;  // for `data`
  Record record;  // with its partners
  std::vector<PartnerRead> partners;
  int step = 0;            // where it stands in the plan
  PixelRequests requests;  // of that step, while it waits for its group
  GateHold reserved;       // from its header to its end, where it may wait for Python
  std::optional<PythonCall> call;
  RowFailures failure;  // at most one: of the record that stood here first
  int attempt = 0;      // at a substitute for it

  bool settled() const { return state == State::kSettled; }
  bool bad() const { return state == State::kBad; }
};

// What is being done to a run's records, for whoever asks why no batch comes.
struct RunActivity {
  enum class Kind : uint8_t { kWaits, kReads, kMakes, kInPython };
  std::atomic<Kind> kind{Kind::kWaits};
  std::atomic<int64_t> record{-1};  // kReads, kMakes
  std::atomic<int> step{-1};        // kInPython: the plan's; the records are those that stand there
  std::atomic<double> since{0};     // seconds of the steady clock

  void begin(Kind what, int64_t of_record, double now) {
    record = of_record;
    since = now;
    kind = what;
  }
};

struct RecordRun {
  OpenBatch* batch = nullptr;
  int first_row = 0, rows = 0;
  bool begun = false;
  RunActivity own_activity;
  RunActivity* activity = &own_activity;  // of the run that a group is a part of
  // Capacity is kept from run to run.
  std::vector<InFlight> flight;
  std::vector<RowSource> sources;  // of the records that are being written
};

}  // namespace headrace
