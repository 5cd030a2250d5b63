// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/bad_records.h"

#include <cstring>
#include <utility>

#include "headrace/base/json_writer.h"
#include "headrace/base/number_text.h"

namespace headrace {
namespace {

// Rates are not meaningful before this many records.
constexpr int64_t kMinimumSeen = 1000;
constexpr size_t kListed = 10'000;

const ErrorCode kBudgetSpent{
    "HR0731", ErrorKind::kData, "too many bad records",
    "on_error= tolerates bad records up to error_budget=, as a number and as a fraction. More "
    "than that usually means a broken copy or a wrong path, and training on substitutes would "
    "hide it. `headrace scan` lists every bad record."};

}  // namespace

void add_place(Error& error, const Source& source, int64_t record) {
  error.where.record = record;
  if (!error.where.file.empty()) return;
  Where place = source.where(record);
  if (place.offset >= 0 && error.where.offset >= 0) {
    error.note += (error.note.empty() ? "" : "; ") + std::string("at byte ") +
                  std::to_string(error.where.offset) + " of the image";
  }
  if (place.offset < 0) place.offset = error.where.offset;
  error.where = std::move(place);
  error.where.record = record;
}

std::string json_of(const BadRecord& record) {
  const Error& error = record.error;
  JsonWriter json;
  json.begin_object();
  json.member("epoch", record.epoch);
  json.member("position", record.position);
  json.member("record", record.record);
  json.member("key", record.key);
  json.member("code", std::string_view(error.code ? error.code->id : ""));
  json.member("what", error.what);
  json.member("file", error.where.file);
  if (!error.where.member.empty()) json.member("member", error.where.member);
  if (error.where.offset >= 0) json.member("offset", error.where.offset);
  json.member("action", record.action);
  json.end_object();
  return json.text();
}

BadRecords::BadRecords(int64_t budget, double rate, const std::string& path,
                       std::function<void(const std::string&)> warn)
    : budget_(budget), rate_(rate), file_(path), warn_(std::move(warn)) {}

void BadRecords::begin_epoch(int64_t bad) {
  MutexLock lock(mutex_);
  in_epoch_ = bad;
}

// Allocates before it changes anything: a batch is made again if allocating its entries fails, and
// entries that count as listed must be in the list and in the file.
void BadRecords::add(BadRecord record) {
  const std::string line = file_ ? json_of(record) + '\n' : std::string();
  int missing = 0;
  {
    MutexLock lock(mutex_);
    if (list_.size() < kListed && list_.size() == list_.capacity()) {
      list_.reserve(2 * list_.size() + 16);
    }
    // A batch that is retried, or an epoch that is resumed, finds the same bad records again.
    const bool is_new =
        listed_.size() >= kListed || listed_.insert({record.epoch, record.position}).second;
    ++in_epoch_;
    if (!is_new) return;
    ++total_;
    if (list_.size() < kListed) list_.push_back(std::move(record));
    if (file_) missing = file_.append(line);
    if (missing == 0 || std::exchange(warned_, true)) return;
  }
  if (!warn_) return;
  warn_("quarantine file " + file_.path() + ": " + std::strerror(missing) +
        "; bad records are missing in it from now on (loader.quarantine has them)");
}

void BadRecords::account(RowFailures& failures, const Source& source, int64_t epoch,
                         const BatchRange& rows, int64_t seen) {
  if (failures.empty()) return;
  failures.sort([](const RowFailure& a, const RowFailure& b) { return a.row < b.row; });
  for (RowFailure& failure : failures) add_place(failure.error, source, failure.record);
  for (RowFailure& failure : failures) {
    if (failure.fatal) throw Exception(std::move(failure.error));
  }
  for (RowFailure& failure : failures) {
    const int64_t position = rows.begin + failure.row;
    if (position >= rows.valid_end) continue;
    add({epoch, position, failure.record, source.key(failure.record), std::move(failure.error),
         std::move(failure.action)});
  }
  check(seen);
}

void BadRecords::check(int64_t seen) const {
  MutexLock lock(mutex_);
  const bool many = in_epoch_ > budget_;
  const bool often =
      seen >= kMinimumSeen && static_cast<double>(in_epoch_) > rate_ * static_cast<double>(seen);
  if (!many && !often) return;
  Error error{.code = &kBudgetSpent,
              .what = std::to_string(in_epoch_) + " of " + std::to_string(seen) +
                      " records of this epoch are bad; " +
                      (many ? "the budget is " + std::to_string(budget_)
                            : "the tolerated fraction is " + shortest_text(rate_)),
              .hint = "`headrace scan` lists every bad record; error_budget= raises the limit"};
  if (!list_.empty())
    error.note = "the last one: " + list_.back().error.what + " (" + list_.back().key + ")";
  throw Exception(std::move(error));
}

int64_t BadRecords::in_epoch() const {
  MutexLock lock(mutex_);
  return in_epoch_;
}

int64_t BadRecords::total() const {
  MutexLock lock(mutex_);
  return total_;
}

std::vector<BadRecord> BadRecords::list() const {
  MutexLock lock(mutex_);
  return list_;
}

}  // namespace headrace
