// SPDX-License-Identifier: Apache-2.0
// The records that each row of each epoch is made from: its own, its partners (Note [Partners] in
// ops/op.h), and substitutes for bad ones. A pure function of (seed, epoch, position); immutable
// and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/executor/reading/read_ahead.h"
#include "headrace/executor/row_task.h"

namespace headrace {

class RecordOrder {
 public:
  explicit RecordOrder(const RowTask& task);

  // The record at a position of an epoch. Padding repeats the epoch's first records.
  int64_t index_at(int64_t epoch, int64_t position) const;
  // The same after `attempt` bad records at that position: a substitute.
  int64_t record_at(int64_t epoch, int64_t position, int attempt) const;
  int64_t substitute_position(int64_t epoch, int64_t position, int attempt) const;

  int partners() const { return partners_; }  // per row
  // Whether partners come from the positions just before the row's, so that prepared ones are
  // cached (Note [Near partners]).
  bool is_near() const { return near_ > 0; }
  // The position of partner number `partner` of the row at this position. A substitute has other
  // partners than the record that it replaces, since one bad partner would otherwise make every
  // substitute fail. A row's partners are distinct, and differ from its own position, if the epoch
  // has enough positions.
  int64_t partner_position(int64_t epoch, int64_t position, int partner, int attempt) const;
  // Assigns the record's partners, by its position and attempt.
  void place_partners(int64_t epoch, Record& record) const;

  // Reads per row, which have consecutive numbers in the stream: its own record, then its partners
  // if these are read ahead.
  int64_t reads_a_row() const { return is_near() ? 1 : 1 + partners_; }
  // This rank's reads from a batch to the end of its epoch, and then of the next one. The result
  // refers to this object.
  ReadOrder reads_from(int64_t epoch, int64_t batch, bool goes_on) const;
  // Ranges of records that a storage may fetch as a whole when this batch is started: those that
  // are first needed by a batch a few ahead. `first_of_stream`: there was no earlier call.
  std::vector<RecordRange> begun_by(int64_t epoch, int64_t batch, bool first_of_stream) const;

 private:
  int64_t spread(int64_t epoch) const;
  int64_t reads_of_epoch_from(int64_t batch) const;
  int64_t index_of_read(int64_t epoch, int64_t first_batch, int64_t read) const;
  RowPosition row_of_read(int64_t epoch, int64_t first_batch, int64_t read) const;

  const SamplerPtr sampler_;
  const BatchLayout layout_;
  const uint64_t seed_;
  const int partners_;
  const int64_t near_;          // number of positions that partners come from; 0: the whole epoch
  const uint64_t partner_key_;  // key of the draws of the step that has partners
};

}  // namespace headrace
