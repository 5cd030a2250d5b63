// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/partners.h"

#include <cstring>

#include "headrace/executor/timed_steps.h"

namespace headrace {

void Partners::read(const Rows& rows, InFlight& flight) const {
  const size_t count = static_cast<size_t>(order_.partners());
  if (count == 0) return;
  order_.place_partners(rows.epoch, flight.record);
  flight.partners.resize(count);
  for (size_t i = 0; i < count; ++i) {
    PartnerRead& read = flight.partners[i];
    const Record& partner = flight.record.partners[i];
    if (flight.alone) {
      reads_.read_alone(partner.index, read.data);
    } else if (order_.is_near()) {
      read.kept = kept_.find(rows.epoch, partner.position);
      if (read.kept) continue;
      read.lent = ReadLoan(reads_, reads_.fetch_unordered(partner.index, read.data));
    } else {  // without waiting for room: the row holds some already
      const int64_t number = rows.sequence_of(flight.row) * order_.reads_a_row() + 1 + int64_t(i);
      read.lent = ReadLoan(reads_, reads_.fetch(number, partner.index, read.data));
    }
  }
}

Result<void> Partners::begin(InFlight& flight, Renderer& renderer) const {
  for (size_t i = 0; i < flight.record.partners.size(); ++i) {
    Record& partner = flight.record.partners[i];
    PartnerRead& read = flight.partners[i];
    if (read.kept) continue;
    flight.blamed = partner.index;
    if (!read.data.result) return std::move(read.data.result.error());
    Result<void> begun = task_.plan->begin(read.data, partner, renderer);
    if (!begun) return begun;
    for (FieldValue& value : partner.fields) {
      value.video.decoding.stop = value.audio.decoding.stop = &stop_;
    }
  }
  flight.blamed = flight.record.index;
  return {};
}

Result<void> Partners::advance(const Rows& rows, InFlight& flight, Renderer& renderer) const {
  const bool keeps = !flight.alone;
  if (order_.is_near()) {
    Result<int> prepared = prepare(flight.record, renderer, rows.epoch, keeps);
    if (!prepared) return std::move(prepared.error());
    flight.step = *prepared;
  }
  for (size_t i = 0; i < flight.record.partners.size(); ++i) {
    Record& partner = flight.record.partners[i];
    if (take_kept(flight.partners[i].kept.get(), partner)) continue;
    flight.blamed = partner.index;
    Result<int> there = order_.is_near() ? prepare(partner, renderer, rows.epoch, keeps)
                                         : advance_timed(task_, 0, partner, renderer, rows.epoch,
                                                         task_.plan->partner_step());
    if (!there) return std::move(there.error());
  }
  flight.blamed = flight.record.index;
  return {};
}

// Advances a record to the step with near partners and prepares it (Op::prepare); returns that
// step. `keeps`: caches the result for other rows, and uses cached ones.
Result<int> Partners::prepare(Record& record, Renderer& renderer, int64_t epoch, bool keeps) const {
  const Plan& plan = *task_.plan;
  const size_t reserved = bytes_.of_one(record);
  Result<int> there = advance_timed(task_, 0, record, renderer, epoch, plan.partner_step());
  if (!there) return there;
  if (keeps && take_kept(kept_.find(epoch, record.position).get(), record)) return there;
  Result<void> prepared =
      plan.prepare_partner(record, renderer, task_.seed, static_cast<uint64_t>(epoch));
  if (!prepared) return std::move(prepared.error());
  if (keeps) keep(epoch, record, reserved);
  return there;
}

// The step's prepared fields.
bool Partners::take_kept(const CachedPartner* kept, Record& record) const {
  if (!kept) return false;
  record.fields.resize(kept->record.fields.size());
  for (const int field : task_.plan->steps()[task_.plan->partner_step()].fields) {
    record.fields[field] = kept->record.fields[field];
  }
  return true;
}

void Partners::keep(int64_t epoch, const Record& record, size_t reserved) const {
  Record kept{.index = record.index,
              .position = record.position,
              .fields = {},
              .pixels = {},
              .partners = {}};
  kept.fields.resize(record.fields.size());
  for (const int field : task_.plan->steps()[task_.plan->partner_step()].fields) {
    FieldValue& value = kept.fields[field] = record.fields[field];
    if (is_picture(value.kind) || value.bytes.empty()) continue;
    Buffer own(value.bytes.size());  // the source's memory is freed with the row
    std::memcpy(own.data(), value.bytes.data(), own.size());
    value.own(std::move(own));
  }
  kept_.keep(epoch, {std::move(kept), reserved});
}

}  // namespace headrace
