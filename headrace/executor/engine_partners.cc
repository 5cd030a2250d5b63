// SPDX-License-Identifier: Apache-2.0
// Records that a partner step takes beside a row's own (Note [Partner steps] in ops/op.h). A row's
// reads are consecutive numbers of the read-ahead, its own first, so partners are read ahead in
// their order and count in its share. Their working memory is asked for together with the row's.
#include "headrace/executor/engine.h"

namespace headrace {

// A function of seed, epoch and position; a substitute's partners are drawn anew, or one bad
// partner would spoil all of them.
int64_t Engine::partner_position(int64_t epoch, int64_t position, int partner, int attempt) const {
  static const uint64_t key = hash_name("partner");
  const uint64_t step = options_.plan->steps()[options_.plan->partner_step()].key;
  Draws draws(options_.seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(position),
              mix64(mix64(key, step), mix64(uint64_t(partner), uint64_t(attempt))));
  return draws.below(options_.layout.positions());
}

void Engine::place_partners(int64_t epoch, int attempt, Record& record) const {
  record.partners.resize(static_cast<size_t>(partners_));
  for (int i = 0; i < partners_; ++i) {
    record.partners[i].position = partner_position(epoch, record.position, i, attempt);
    record.partners[i].index = index_at(epoch, record.partners[i].position);
  }
}

// All of them, also where the row's own record is bad: nobody else takes them out of the
// read-ahead.
void Engine::read_partners(const OpenBatch& batch, int row, InFlight& flight) {
  if (partners_ == 0) return;
  place_partners(batch.builder.epoch(), flight.attempt, flight.record);
  flight.partners.resize(static_cast<size_t>(partners_));
  const int64_t sequence = (batch.first_sequence + row) * reads_a_row();
  for (int i = 0; i < partners_; ++i) {
    PartnerRead& read = flight.partners[i];
    const int64_t index = flight.record.partners[i].index;
    if (flight.attempt > 0) {
      read_alone(index, read.data);
    } else {  // without waiting for room: the row holds some already
      read.lent = ReadLoan(read_ahead_, read_ahead_.fetch(sequence + 1 + i, index, read.data));
    }
  }
}

Result<void> Engine::begin_partners(std::span<const PartnerRead> reads, Record& record,
                                    Renderer& renderer, int64_t& blamed) {
  for (size_t i = 0; i < record.partners.size(); ++i) {
    Record& partner = record.partners[i];
    blamed = partner.index;
    if (!reads[i].data.result) return reads[i].data.result.error();
    Result<void> begun = options_.plan->begin(reads[i].data, partner, renderer);
    if (!begun) return begun;
  }
  blamed = record.index;
  return {};
}

// To where they stand before the step that takes them.
Result<void> Engine::advance_partners(Record& record, Renderer& renderer, uint64_t epoch,
                                      int64_t& blamed) {
  for (Record& partner : record.partners) {
    blamed = partner.index;
    Result<int> there = apply_steps(0, partner, renderer, epoch, options_.plan->partner_step());
    if (!there) return std::move(there.error());
  }
  blamed = record.index;
  return {};
}

}  // namespace headrace
