// SPDX-License-Identifier: Apache-2.0
// Records that a partner step takes beside a row's own (Note [Partner steps] in ops/op.h). A row's
// reads are consecutive numbers of the read-ahead, its own first, so partners are read ahead in
// their order and count in its share. Their working memory is asked for together with the row's.
#include <algorithm>
#include <cstring>

#include "headrace/base/permutation.h"
#include "headrace/executor/engine.h"

namespace headrace {

// A function of seed, epoch and position; a substitute's partners are drawn anew, or one bad
// partner would spoil all of them. No two are one, and none is the row's own, where the epoch has
// positions enough.
int64_t Engine::partner_position(int64_t epoch, int64_t position, int partner, int attempt) const {
  static const uint64_t key = hash_name("partner");
  const uint64_t step = options_.plan->steps()[options_.plan->partner_step()].key;
  Draws draws(options_.seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(position),
              mix64(mix64(key, step), static_cast<uint64_t>(attempt)));
  // All of the epoch, or those up to the row's own.
  const int64_t positions = options_.layout.positions(), within = options_.plan->partners_within();
  const bool all = within == 0 || within >= positions;
  const int64_t count = all ? positions : within;
  const int64_t first = all ? 0 : std::max<int64_t>(position % positions + 1 - within, 0);
  const int64_t others = count - 1;
  if (others < partners_) {
    for (int before = 0; before < partner; ++before) draws.below(count);
    return first + draws.below(count);
  }
  const Permutation order(others, draws.key());
  const int64_t own =
      attempt > 0 ? substitute_position(epoch, position, attempt) : position % positions;
  const int64_t place = first + order(partner);
  return place < own ? place : place + 1;
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
    const Record& partner = flight.record.partners[i];
    if (flight.attempt > 0) {
      read_alone(partner.index, read.data);
    } else if (is_near()) {
      read.kept = kept_.find(batch.builder.epoch(), partner.position);
      if (read.kept) continue;
      read.data.max_bytes = shares_.largest_file;
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
    Result<void> begun = options_.plan->begin(reads[i].data, partner, renderer);
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
    Result<int> there =
        is_near() ? prepare(partner, renderer, epoch, keeps)
                  : apply_steps(0, partner, renderer, epoch, options_.plan->partner_step());
    if (!there) return std::move(there.error());
  }
  blamed = record.index;
  return {};
}

Result<int> Engine::prepare(Record& record, Renderer& renderer, uint64_t epoch, bool keeps) {
  const Plan& plan = *options_.plan;
  const size_t reserved = bytes_of_one(record);
  Result<int> there = apply_steps(0, record, renderer, epoch, plan.partner_step());
  if (!there) return there;
  if (keeps && take_kept(kept_.find(int64_t(epoch), record.position).get(), record)) return there;
  Result<void> prepared = plan.prepare_partner(record, renderer, options_.seed, epoch);
  if (!prepared) return std::move(prepared.error());
  if (keeps) keep(epoch, record, reserved);
  return there;
}

// The step's fields, as they were prepared.
bool Engine::take_kept(const KeptPartner* kept, Record& record) const {
  if (!kept) return false;
  record.fields.resize(kept->record.fields.size());
  for (const int field : options_.plan->steps()[options_.plan->partner_step()].fields) {
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
  for (const int field : options_.plan->steps()[options_.plan->partner_step()].fields) {
    FieldValue& value = kept.fields[field] = record.fields[field];
    if (is_picture(value.kind) || value.bytes.empty()) continue;
    Buffer own(value.bytes.size());  // the source's memory goes with the row
    std::memcpy(own.data(), value.bytes.data(), own.size());
    value.own(std::move(own));
  }
  kept_.keep(static_cast<int64_t>(epoch), {std::move(kept), reserved});
}

}  // namespace headrace
