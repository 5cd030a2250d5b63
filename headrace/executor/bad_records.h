// SPDX-License-Identifier: Apache-2.0
// State of on_error=: the quarantine list, its JSON-lines file, and the budget of bad records,
// which ends a run when it is exceeded.
//
// Entries are added in the order in which the consumer receives batches, so the list and the moment
// at which the budget is exceeded do not depend on threads. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/base/mutex.h"
#include "headrace/sampling/batch_layout.h"
#include "headrace/sources/source.h"

namespace headrace {

enum class OnError : uint8_t {
  kRaise,       // the run ends with the error, at its batch
  kSubstitute,  // the row is filled by a record drawn from (seed, epoch, position, attempt)
  kSkip,        // the row is left out; the batch is shorter
};

// A row that failed.
struct RowFailure {
  int row = 0;
  int64_t record = 0;
  Error error;
  std::string action = {};
  bool fatal = false;  // on_error does not apply, or every substitute was bad as well
};
// A list, because moving an entry (splice) allocates nothing: reporting a failed row cannot itself
// fail for lack of memory.
using RowFailures = std::list<RowFailure>;

// Whether another machine may be able to make the row: the storage or the setup failed rather than
// the record, or memory could not be allocated.
bool may_succeed_elsewhere(const RowFailure& failure);

struct BadRecord {
  int64_t epoch = 0, position = 0, record = 0;
  std::string key;
  Error error;
  std::string action;  // "substituted by record 17", "skipped"
};

// The caught exception as an error value: one with a code unchanged, HR0704 for failed allocations,
// HR0791 for anything else. REQUIRES: a catch block.
Error error_from_current_exception();

// The file given by quarantine=. Several processes may append to it; a line is written completely
// or not at all.
class QuarantineFile {
 public:
  // `path` empty: no file. Throws Exception HR0730 if it cannot be written.
  explicit QuarantineFile(std::string path);

  explicit operator bool() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  // Appends a line. Returns 0, or the errno if the line could not be written, such as ENOSPC.
  // Allocates nothing.
  int append(std::string_view line) const noexcept;

 private:
  const std::string path_;
};

class BadRecords {
 public:
  // `path` empty: no file. Throws Exception HR0730 if the file cannot be written. `warn` is called
  // once if entries could not be added to it.
  BadRecords(int64_t budget, double rate, const std::string& path,
             std::function<void(const std::string&)> warn = {});

  // Begins an epoch, or resumes one in which `bad` bad records were found before.
  void begin_epoch(int64_t bad) EXCLUDES_LOCK(mutex_);
  void add(BadRecord record) EXCLUDES_LOCK(mutex_);
  // Adds the failures of a batch's rows, then calls check(). Padding is not counted: its records
  // are counted where they are valid. If a failure is fatal, throws the error of the first fatal
  // one and adds nothing, so that a batch that is retried is not counted twice.
  void account(RowFailures& failures, const Source& source, int64_t epoch, const BatchRange& rows,
               int64_t seen) EXCLUDES_LOCK(mutex_);
  // Throws Exception HR0731 if the budget is exceeded. `seen`: records of the epoch so far.
  void check(int64_t seen) const EXCLUDES_LOCK(mutex_);

  int64_t in_epoch() const EXCLUDES_LOCK(mutex_);
  int64_t total() const EXCLUDES_LOCK(mutex_);
  std::vector<BadRecord> list() const EXCLUDES_LOCK(mutex_);  // the first 10,000

 private:
  const int64_t budget_;
  const double rate_;
  const QuarantineFile file_;
  const std::function<void(const std::string&)> warn_;
  mutable Mutex mutex_;
  bool warned_ GUARDED_BY(mutex_) = false;
  int64_t in_epoch_ GUARDED_BY(mutex_) = 0, total_ GUARDED_BY(mutex_) = 0;
  std::vector<BadRecord> list_ GUARDED_BY(mutex_);
  std::set<std::pair<int64_t, int64_t>> listed_ GUARDED_BY(mutex_);  // epoch, position
};

// Completes the location of a record's error from the source, since a decoder does not know the
// file. If the source has an offset too, the offset of the decoder, which counts from the start of
// the image, is moved to the note.
void add_place(Error& error, const Source& source, int64_t record);

// One line of JSON, as written to the quarantine file and by `headrace scan`.
std::string json_of(const BadRecord& record);

}  // namespace headrace
