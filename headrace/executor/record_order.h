// SPDX-License-Identifier: Apache-2.0
// Which record each row of each epoch is made of: its own, its partners (Note [Partner steps] in
// ops/op.h), and those that substitute for bad ones. Pure arithmetic on (seed, epoch, position),
// thread-safe and immutable.
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
  // The same after `attempt` bad records there: the substitute.
  int64_t record_at(int64_t epoch, int64_t position, int attempt) const;
  int64_t substitute_position(int64_t epoch, int64_t position, int attempt) const;

  int partners() const { return partners_; }  // per row
  // Partners are positions before the row's own, and prepared ones are kept (Note [Near partners]).
  bool is_near() const { return near_ > 0; }
  // Partners of a row at this position. A substitute has other partners than the record that it
  // replaces, since one bad partner would otherwise make all of them fail. They are distinct, and
  // different from the row's own, if the epoch has enough positions.
  int64_t partner_position(int64_t epoch, int64_t position, int partner, int attempt) const;
  // Assigns the record's partners, by its position and attempt.
  void place_partners(int64_t epoch, Record& record) const;

  // Reads of a row have consecutive numbers in the stream: its own record, then its partners, if
  // these are read ahead.
  int64_t reads_a_row() const { return is_near() ? 1 : 1 + partners_; }
  // This rank's reads from a batch to the end of its epoch, and then of the next one. It refers to
  // this object.
  ReadOrder reads_from(int64_t epoch, int64_t batch, bool goes_on) const;
  // Ranges that a storage may fetch as a whole when this batch is started: those that batches some
  // way ahead begin to read. `first_of_stream`: nothing was announced before.
  std::vector<RecordRange> begun_by(int64_t epoch, int64_t batch, bool first_of_stream) const;

 private:
  int64_t spread(int64_t epoch) const;
  int64_t reads_of_epoch_from(int64_t batch) const;
  int64_t index_of_read(int64_t epoch, int64_t first_batch, int64_t read) const;

  const SamplerPtr sampler_;
  const BatchLayout layout_;
  const uint64_t seed_;
  const int partners_;
  const int64_t near_;          // the positions that near partners come from; 0: the whole epoch
  const uint64_t partner_key_;  // of the draws of the step that takes partners
};

}  // namespace headrace
