// SPDX-License-Identifier: Apache-2.0
// A short run of consecutive rows of one batch: a worker claims it, takes it through the pipeline
// group by group, and reports on it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/executor/bad_records.h"
#include "headrace/executor/batch/batch_builder.h"
#include "headrace/executor/memory/memory_gate.h"
#include "headrace/executor/memory/partner_cache.h"
#include "headrace/executor/reading/read_ahead.h"
#include "headrace/image/render.h"

namespace headrace {

struct OpenBatch;

// Rows [first, first + count) of a batch.
struct Rows {
  int64_t epoch = 0, batch = 0;
  int64_t position = 0;  // of the batch's row 0 in the epoch
  // Sequence number of the batch's row 0 in the stream; -1: in no stream, its records are read
  // individually.
  int64_t sequence = -1;
  int first = 0, count = 0;

  bool is_streamed() const { return sequence >= 0; }
  int64_t position_of(int row) const { return position + row; }
  // -1 if it is in no stream; this sorts before all rows of the stream.
  int64_t sequence_of(int row) const { return is_streamed() ? sequence + row : -1; }
};

// Complete groups of rows that batch steps mix.
struct MixGroup {
  int64_t first = 0, count = 0;
};

// Results of rows since they were last taken (OpenBatches::note, finish).
struct RowsReport {
  int settled = 0;  // rows that were written, dropped or failed
  int64_t warnings = 0;
  size_t list_bytes = 0;  // of fields delivered as lists
  RowFailures failures = {};
  PictureRemarks remarks = {};
  StageSeconds stages = {};
  double seconds = 0;
};

// Bytes read for a partner of a record (Note [Partners] in ops/op.h).
struct PartnerRead {
  RecordData data;
  ReadLoan lent;
  // Used instead if the partner was cached. shared: see PartnerCache
  std::shared_ptr<const CachedPartner> kept = {};
};

// One row's record, from reading to writing.
struct InFlight {
  // kIdle: not read yet. kBegun: its header is read, and it needs memory. kGoing: it has memory,
  // and can take its next step once the pixels that it requested are there. kAtPython: it waits at
  // a Python step. kAtEnd: it may be written. kBad: its substitute must be started. kSettled:
  // written, dropped or failed.
  enum class State : uint8_t { kIdle, kBegun, kGoing, kAtPython, kAtEnd, kBad, kSettled };
  State state = State::kIdle;
  int row = 0;         // of the batch
  bool alone = false;  // read individually, not in the order of the stream
  RecordData data;
  ReadLoan lent;  // for `data`
  Record record;  // with its partners
  std::vector<PartnerRead> partners;
  int64_t blamed = -1;     // the record that a current error belongs to: its own or a partner
  int step = 0;            // its position in the plan
  PixelRequests requests;  // of that step, while it waits for its group
  GateHold reserved;       // from reading its header until it is settled
  std::optional<PythonCall> call;
  RowFailures failure;  // at most one: that of the row's first record
  int attempt = 0;      // number of the attempt at a substitute

  bool begun() const { return state == State::kBegun; }
  bool going() const { return state == State::kGoing; }
  bool at_end() const { return state == State::kAtEnd; }
  bool bad() const { return state == State::kBad; }
  bool at_python() const { return state == State::kAtPython; }
  bool settled() const { return state == State::kSettled; }
};

// What is being done with a run's records, for a consumer that asks why no batch arrives.
struct RunActivity {
  // kForPython: it waits until Python takes it.
  enum class Kind : uint8_t { kWaits, kReads, kMakes, kForPython, kInPython };
  std::atomic<Kind> kind{Kind::kWaits};
  std::atomic<int64_t> record{-1};  // kReads, kMakes
  std::atomic<int> step{-1};        // kInPython: the plan's step that the records wait at
  std::atomic<double> since{0};     // seconds of the steady clock

  void begin(Kind what, int64_t of_record, double now) {
    record = of_record;
    since = now;
    kind = what;
  }
};

// The state of a run when a worker returns it: it can continue immediately, all its rows are
// settled, it waits for Python, or it lacks memory.
enum class RunOutcome : uint8_t { kMore, kDone, kAtPython, kLacksMemory };

// Belongs to one thread at a time.
struct RecordRun {
  Rows rows;
  BatchBuilder* to = nullptr;  // where they are written
  OpenBatch* of = nullptr;     // the batch of these rows; used only by OpenBatches
  bool begun = false;
  // Number of its rows that have been taken: by groups, or, with Python steps, by the current sweep
  // over all rows. Once a row finds too little memory, the sweep visits only rows that wait at a
  // Python step.
  int taken = 0;
  bool lacks_memory = false;
  RunActivity activity;
  // Capacity is kept from run to run.
  std::vector<InFlight> flight;    // of each row with Python steps, else of the current group
  std::vector<RowSource> sources;  // of the records that are being written
  RowsReport report;
};

}  // namespace headrace
