// SPDX-License-Identifier: Apache-2.0
// Rows of open batches that are made by other processes. They are lent from the far end of the open
// batches while workers claim from the near end, so the two meet somewhere, and no speed has to be
// predicted. Rows that are returned late find their loan gone, and are dropped before they are
// written.
#include <algorithm>
#include <atomic>

#include "headrace/base/clock.h"
#include "headrace/executor/open_batches.h"

namespace headrace {
namespace {

const ErrorCode kForeignRows{
    "HR0713", ErrorKind::kConfig, "rows of a different pipeline",
    "Rows made by another process do not have this loader's size. Both must run the same "
    "transforms on the same records, in the same version."};

// Rows that come back to another loader of this process must not be taken for a loan of its own.
int64_t next_loan() {
  static std::atomic<int64_t> last{0};
  return ++last;
}

}  // namespace

std::optional<LentRows> OpenBatches::lend(int most, double patience_seconds) {
  const int64_t group = task_.plan->batch_group();
  const auto up = [group](int64_t row) { return (row + group - 1) / group * group; };
  MutexLock lock(mutex_);
  if (!running_ || !makers_.lends) return std::nullopt;
  while (open_next()) continue;
  for (auto each = open_.rbegin(); each != open_.rend(); ++each) {
    OpenBatch& batch = **each;
    BatchLedger& ledger = batch.ledger;
    const int64_t lowest = up(ledger.claimed_), end = ledger.lent_from_;
    const int64_t first = std::max(lowest, up(std::max<int64_t>(0, end - most)));
    // A group that is larger than requested is lent alone.
    const int64_t begin = first < end ? first : std::max(lowest, (end - 1) / group * group);
    if (begin >= end) continue;
    const LentRows rows{{.epoch = epoch_,
                         .batch = batch.builder.index(),
                         .first = static_cast<int>(begin),
                         .count = static_cast<int>(end - begin)},
                        next_loan(),
                        ledger.first_sequence_ + begin};
    lent_.emplace(rows.number, Loan{&batch, rows.first, rows.count, now() + patience_seconds});
    ledger.lent_from_ = rows.first;
    return rows;
  }
  return std::nullopt;
}

bool OpenBatches::arrive(int64_t number, RowsResult made, const RowBytes& bytes) {
  Loan loan;
  {
    MutexLock lock(mutex_);
    const auto found = lent_.find(number);
    if (found == lent_.end() || found->second.arrives) return false;
    if (!found->second.of->builder.fits(bytes, found->second.count)) {
      raise(kForeignRows, "rows of batch " + std::to_string(found->second.of->builder.index()));
    }
    found->second.arrives = true;  // from now on the rows belong to this thread
    loan = found->second;
  }
  loan.of->builder.put(loan.first, loan.count, bytes, made.dropped);
  for (RowFailure& failure : made.failures) failure.row += loan.first;
  bool is_full = false, consumer_waits = true;
  {
    MutexLock lock(mutex_);
    lent_.erase(number);
    BatchLedger& ledger = loan.of->ledger;
    ledger.failures_.splice(ledger.failures_.end(), made.failures);
    ledger.warnings_ += made.warnings;
    ledger.remarks_ += made.remarks;
    ledger.done_ += loan.count;
    const int64_t group = task_.plan->batch_group();
    for (int64_t row = loan.first; row < loan.first + loan.count; row += group) {
      if (!ledger.unsettled_.empty())
        ledger.unsettled_[size_t(row / group)] = 0;  // mixed elsewhere
    }
    is_full = is_filled(*loan.of);
    consumer_waits = consumer_waits_;
    progress_.notify_all();
  }
  if (is_full && !consumer_waits) makers_.wake();  // a third buffer may be used
  return true;
}

void OpenBatches::recall(int64_t number) {
  {
    MutexLock lock(mutex_);
    const auto found = lent_.find(number);
    if (found == lent_.end() || found->second.arrives) return;
    recalled_.push_back(found->second);
    lent_.erase(found);
  }
  makers_.wake();
}

// Recalls the rows of the batch that the consumer waits for.
void OpenBatches::recall_expired() {
  bool any = false;
  {
    MutexLock lock(mutex_);
    if (lent_.empty() || open_.empty()) return;
    const double at = now();
    for (auto each = lent_.begin(); each != lent_.end();) {
      const Loan& loan = each->second;
      const bool late = loan.of == open_.front().get() && !loan.arrives && loan.due < at;
      if (late) recalled_.push_back(loan);
      each = late ? lent_.erase(each) : std::next(each);
      any |= late;
    }
  }
  if (any) makers_.wake();
}

bool OpenBatches::is_out(int64_t number) const {
  MutexLock lock(mutex_);
  return lent_.contains(number);
}

}  // namespace headrace
