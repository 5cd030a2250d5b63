// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/record_order.h"

#include <algorithm>

#include "headrace/base/permutation.h"

namespace headrace {
namespace {

uint64_t partner_key(const Plan& plan) {
  return plan.partners() > 0 ? plan.steps()[size_t(plan.partner_step())].key : 0;
}

}  // namespace

RecordOrder::RecordOrder(const RowTask& task)
    : sampler_(task.sampler),
      layout_(task.layout),
      seed_(task.seed),
      partners_(task.plan->partners()),
      near_(task.plan->partners_within()),
      partner_key_(partner_key(*task.plan)) {}

int64_t RecordOrder::index_at(int64_t epoch, int64_t position) const {
  return sampler_->index(seed_, static_cast<uint64_t>(epoch), position % layout_.positions());
}

int64_t RecordOrder::record_at(int64_t epoch, int64_t position, int attempt) const {
  return index_at(epoch, attempt > 0 ? substitute_position(epoch, position, attempt) : position);
}

int64_t RecordOrder::substitute_position(int64_t epoch, int64_t position, int attempt) const {
  static const uint64_t key = hash_name("substitute");
  Draws draws(seed_, static_cast<uint64_t>(epoch), static_cast<uint64_t>(position),
              mix64(key, static_cast<uint64_t>(attempt)));
  return draws.below(layout_.positions());
}

int64_t RecordOrder::partner_position(int64_t epoch, int64_t position, int partner,
                                      int attempt) const {
  static const uint64_t key = hash_name("partner");
  Draws draws(seed_, static_cast<uint64_t>(epoch), static_cast<uint64_t>(position),
              mix64(mix64(key, partner_key_), static_cast<uint64_t>(attempt)));
  // All records of the epoch, or those up to the row's own.
  const int64_t positions = layout_.positions();
  const bool all = near_ == 0 || near_ >= positions;
  const int64_t count = all ? positions : near_;
  const int64_t first = all ? 0 : std::max<int64_t>(position % positions + 1 - near_, 0);
  const int64_t others = count - 1;
  if (others < partners_) {
    for (int before = 0; before < partner; ++before) draws.below(count);
    return first + draws.below(count);
  }
  const Permutation order(others, draws.key());
  const int64_t own =
      attempt > 0 ? substitute_position(epoch, position, attempt) : position % positions;
  const int64_t drawn = first + order(partner);
  return drawn < own ? drawn : drawn + 1;
}

void RecordOrder::place_partners(int64_t epoch, Record& record) const {
  record.partners.resize(static_cast<size_t>(partners_));
  for (int i = 0; i < partners_; ++i) {
    Record& partner = record.partners[static_cast<size_t>(i)];
    partner.position = partner_position(epoch, record.position, i, record.attempt);
    partner.index = index_at(epoch, partner.position);
  }
}

int64_t RecordOrder::reads_of_epoch_from(int64_t batch) const {
  if (batch >= layout_.batches()) return 0;
  return (layout_.rows_before(layout_.batches()) - layout_.rows_before(batch)) * reads_a_row();
}

// A row's own record, or one of its partners.
int64_t RecordOrder::index_of_read(int64_t epoch, int64_t first_batch, int64_t read) const {
  const int64_t row = layout_.rows_before(first_batch) + read / reads_a_row();
  const int64_t position = layout_.position_of_row(row);
  const int partner = static_cast<int>(read % reads_a_row()) - 1;
  return index_at(epoch, partner < 0 ? position : partner_position(epoch, position, partner, 0));
}

// The row that a record is read for.
RowPosition RecordOrder::row_of_read(int64_t epoch, int64_t first_batch, int64_t read) const {
  if (read % reads_a_row() != 0) return {};
  const int64_t row = layout_.rows_before(first_batch) + read / reads_a_row();
  return {.epoch = epoch, .position = layout_.position_of_row(row)};
}

// The records that are mixed into the first ones of an epoch.
int64_t RecordOrder::spread(int64_t epoch) const {
  int64_t records = sampler_->in_order() ? 1 : 0;
  for (const RecordRange& range :
       sampler_->begun_by(seed_, static_cast<uint64_t>(epoch), 0, 1, layout_)) {
    records += range.end - range.begin;
  }
  return records;
}

ReadOrder RecordOrder::reads_from(int64_t epoch, int64_t batch, bool goes_on) const {
  const int64_t reads = reads_of_epoch_from(batch);
  return {.index_of =
              [this, epoch, batch, reads](int64_t read) {
                return read < reads ? index_of_read(epoch, batch, read)
                                    : index_of_read(epoch + 1, 0, read - reads);
              },
          .count = reads,
          .beyond = reads_of_epoch_from(0),
          .goes_on = goes_on,
          .spread = spread(epoch) * reads_a_row(),
          .at_once = layout_.rank_batch() * reads_a_row(),
          .row_of =
              [this, epoch, batch, reads](int64_t read) {
                return read < reads ? row_of_read(epoch, batch, read)
                                    : row_of_read(epoch + 1, 0, read - reads);
              }};
}

std::vector<RecordRange> RecordOrder::begun_by(int64_t epoch, int64_t batch,
                                               bool first_of_stream) const {
  constexpr int64_t kAhead = 4;  // batches
  const int64_t end = batch + kAhead + 1;
  return sampler_->begun_by(seed_, static_cast<uint64_t>(epoch), first_of_stream ? batch : end - 1,
                            end, layout_);
}

}  // namespace headrace
