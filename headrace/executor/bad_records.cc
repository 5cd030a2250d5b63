// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/bad_records.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "headrace/base/error.h"
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

const ErrorCode kNoQuarantineFile{
    "HR0730", ErrorKind::kConfig, "quarantine file cannot be written",
    "quarantine= names a file to which each bad record is appended as a line of JSON. Its folder "
    "must exist and be writable."};

int opened(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
}

// Returns 0 or an errno; `written`: bytes of it that are in the file.
int write_all(int file, std::string_view text, size_t& written) noexcept {
  while (written < text.size()) {
    const ssize_t wrote = ::write(file, text.data() + written, text.size() - written);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return wrote < 0 ? errno : ENOSPC;
    written += static_cast<size_t>(wrote);
  }
  return 0;
}

const ErrorCode kOutOfMemory{
    "HR0704", ErrorKind::kResource, "out of memory",
    "The system refused memory for this record although memory_limit allows it: other processes "
    "or a container's limit leave less than the loader was allowed. Lower memory_limit or threads."};

const ErrorCode kUnexpected{
    "HR0791", ErrorKind::kData, "exception inside the engine",
    "A part of the engine, or Python code that it called, threw an unexpected exception. It counts "
    "as an error of the current record, so on_error= applies; the message contains the exception."};

}  // namespace

bool may_succeed_elsewhere(const RowFailure& failure) {
  return (failure.fatal && !is_bad_record(failure.error)) || failure.error.code == &kOutOfMemory;
}

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
        "; it may lack bad records from now on (loader.quarantine has them)");
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

QuarantineFile::QuarantineFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  const int file = opened(path_);
  if (file < 0) raise(kNoQuarantineFile, path_ + ": " + std::strerror(errno));
  ::close(file);
}

int QuarantineFile::append(std::string_view line) const noexcept {
  const int file = opened(path_);
  if (file < 0) return errno;
  ::flock(file, LOCK_EX);  // held until close; without locks, only one process may write
  struct stat before{};
  const bool is_file = ::fstat(file, &before) == 0 && S_ISREG(before.st_mode);
  size_t written = 0;
  int error = write_all(file, line, written);
  if (error != 0 && written > 0 && is_file && ::ftruncate(file, before.st_size) != 0) {
    error = errno;
  }
  if (::close(file) != 0 && error == 0) error = errno;  // storage that reports errors late
  return error;
}

Error error_from_current_exception() {
  try {
    throw;
  } catch (const Exception& exception) {
    return exception.error();
  } catch (const std::bad_alloc&) {
    return {.code = &kOutOfMemory, .what = "the system refused memory"};
  } catch (const std::exception& exception) {
    return {.code = &kUnexpected, .what = exception.what()};
  }
}

}  // namespace headrace
