// SPDX-License-Identifier: Apache-2.0
// Records that a partner step takes beside a row's own (Note [Partner steps] in ops/op.h). A row's
// reads are consecutive numbers of the read-ahead, its own first, so partners are read ahead in
// their order and count in its share. Their working memory is asked for together with the row's.
#include <algorithm>
#include <cstring>

#include "headrace/executor/engine.h"

namespace headrace {

// All of them, also where the row's own record is bad: nobody else takes them out of the
// read-ahead.
void Engine::read_partners(const OpenBatch& batch, int row, InFlight& flight) {
  if (order_.partners() == 0) return;
  order_.place_partners(batch.builder.epoch(), flight.record);
  flight.partners.resize(static_cast<size_t>(order_.partners()));
  const int64_t sequence = (batch.first_sequence + row) * order_.reads_a_row();
  for (int i = 0; i < order_.partners(); ++i) {
    PartnerRead& read = flight.partners[i];
    const Record& partner = flight.record.partners[i];
    if (flight.attempt > 0) {
      read_ahead_.read_alone(partner.index, read.data);
    } else if (order_.is_near()) {
      read.kept = kept_.find(batch.builder.epoch(), partner.position);
      if (read.kept) continue;
      read.lent = ReadLoan(read_ahead_, read_ahead_.fetch_beside(partner.index, read.data));
    } else {  // without waiting for room: the row holds some already
      read.lent =
          ReadLoan(read_ahead_, read_ahead_.fetch(sequence + 1 + i, partner.index, read.data));
    }
  }
}

Result<void> Engine::begin_partners(std::span<const PartnerRead> reads, Record& record,
                                    Renderer& renderer, int64_t& blamed) {
  for (size_t i = 0; i < record.partners.size(); ++i) {
    Record& partner = record.partners[i];
    blamed = partner.index;
    if (reads[i].kept) continue;
    if (!reads[i].data.result) return reads[i].data.result.error();
    Result<void> begun = options_.task.plan->begin(reads[i].data, partner, renderer);
    if (!begun) return begun;
    for (FieldValue& value : partner.fields) {
      value.video.decoding.stop = value.sound.decoding.stop = &stopping_;
    }
  }
  blamed = record.index;
  return {};
}

// To where they stand before the step that takes them.
Result<void> Engine::advance_partners(std::span<const PartnerRead> reads, Record& record,
                                      Renderer& renderer, uint64_t epoch, bool keeps,
                                      int64_t& blamed) {
  for (size_t i = 0; i < record.partners.size(); ++i) {
    Record& partner = record.partners[i];
    if (take_kept(reads[i].kept.get(), partner)) continue;
    blamed = partner.index;
    Result<int> there = order_.is_near() ? prepare(partner, renderer, epoch, keeps)
                                         : apply_steps(0, partner, renderer, epoch,
                                                       options_.task.plan->partner_step());
    if (!there) return std::move(there.error());
  }
  blamed = record.index;
  return {};
}

Result<int> Engine::prepare(Record& record, Renderer& renderer, uint64_t epoch, bool keeps) {
  const Plan& plan = *options_.task.plan;
  const size_t reserved = record_bytes_.of_one(record);
  Result<int> there = apply_steps(0, record, renderer, epoch, plan.partner_step());
  if (!there) return there;
  if (keeps && take_kept(kept_.find(int64_t(epoch), record.position).get(), record)) return there;
  Result<void> prepared = plan.prepare_partner(record, renderer, options_.task.seed, epoch);
  if (!prepared) return std::move(prepared.error());
  if (keeps) keep(epoch, record, reserved);
  return there;
}

// The step's fields, as they were prepared.
bool Engine::take_kept(const KeptPartner* kept, Record& record) const {
  if (!kept) return false;
  record.fields.resize(kept->record.fields.size());
  for (const int field : options_.task.plan->steps()[options_.task.plan->partner_step()].fields) {
    record.fields[field] = kept->record.fields[field];
  }
  return true;
}

void Engine::keep(uint64_t epoch, const Record& record, size_t reserved) {
  Record kept{.index = record.index,
              .position = record.position,
              .fields = {},
              .pixels = {},
              .partners = {}};
  kept.fields.resize(record.fields.size());
  for (const int field : options_.task.plan->steps()[options_.task.plan->partner_step()].fields) {
    FieldValue& value = kept.fields[field] = record.fields[field];
    if (is_picture(value.kind) || value.bytes.empty()) continue;
    Buffer own(value.bytes.size());  // the source's memory goes with the row
    std::memcpy(own.data(), value.bytes.data(), own.size());
    value.own(std::move(own));
  }
  kept_.keep(static_cast<int64_t>(epoch), {std::move(kept), reserved});
}

}  // namespace headrace
