// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/file_ranges.h"

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/storage/async_storage.h"
#include "headrace/storage/read_deadline.h"
#include "headrace/storage/storage_errors.h"

namespace headrace {
namespace {

// Longer ranges are split into several requests, which use several connections.
constexpr uint64_t kRequestBytes = uint64_t{8} << 20;

// The ranges of one call, while they are requested.
struct Ranges {
  std::vector<Buffer> bytes;
  std::function<void(RangeBytes)> done;
  Mutex mutex;
  size_t missing GUARDED_BY(mutex) = 0;
  std::optional<Error> failure GUARDED_BY(mutex);

  void arrived(Result<void> result) EXCLUDES_LOCK(mutex) {
    std::optional<Error> failed;
    {
      MutexLock lock(mutex);
      if (!result && !failure) failure = std::move(result.error());
      if (--missing > 0) return;
      failed = std::move(failure);
    }
    const auto call = std::move(done);
    call(failed ? RangeBytes(std::move(*failed)) : RangeBytes(std::move(bytes)));
  }
};
using RangesPtr = std::shared_ptr<Ranges>;  // shared: by its requests

Result<void> read_local(const FileSet& files, const FileRange& range, Buffer& out) {
  return files.read(range.file, range.offset, {out.data(), out.size()});
}

void submit(const FileSet& files, std::span<const FileRange> ranges, const RangesPtr& all) {
  std::map<const AsyncStorage*, std::vector<ScatterRead>> reads;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const FileRange& range = ranges[i];
    const auto* const storage =
        dynamic_cast<const AsyncStorage*>(&storage_of(files.path(range.file)));
    for (uint64_t at = 0; storage && at < range.bytes; at += kRequestBytes) {
      const uint64_t count = std::min(kRequestBytes, range.bytes - at);
      ScatterRead one{.read = {.piece = files.piece(range.file, range.offset + at, count)},
                      .places = std::span(all->bytes[i].data() + at, count)};
      one.read.done = [all](AsyncRead read) { all->arrived(std::move(read.result)); };
      reads[storage].push_back(std::move(one));
    }
  }
  size_t count = 1;  // counts this call until all reads are submitted
  for (const auto& [storage, of] : reads) count += of.size();
  {
    MutexLock lock(all->mutex);
    all->missing = count;
  }
  for (auto& [storage, of] : reads) storage->submit_scattered(std::move(of));
  Result<void> local;
  for (size_t i = 0; i < ranges.size() && local; ++i) {
    if (!is_async(files.path(ranges[i].file))) {
      local = read_local(files, ranges[i], all->bytes[i]);
    }
  }
  all->arrived(std::move(local));
}

}  // namespace

void fetch_ranges(const FileSet& files, std::span<const FileRange> ranges,
                  std::function<void(RangeBytes)> done) {
  const auto all = std::make_shared<Ranges>();
  all->done = std::move(done);
  for (const FileRange& range : ranges) {
    const uint64_t size = files.identity(range.file).size;
    Result<void> good;
    if (range.offset > size || range.bytes > size - range.offset) {
      good = ended_early_error(files.path(range.file), range.offset + range.bytes, size);
    } else {
      try {
        all->bytes.emplace_back(range.bytes);
        continue;
      } catch (const std::bad_alloc&) {
        good = too_large_error(
            files.path(range.file), size,
            "a part of " + std::to_string(range.bytes) + " exceeds the remaining memory");
      }
    }
    const auto call = std::move(all->done);
    return call(std::move(good.error()));
  }
  submit(files, ranges, all);
}

RangeBytes read_ranges(const FileSet& files, std::span<const FileRange> ranges) {
  struct Waiting {
    Mutex mutex;
    Condition changed;
    std::optional<RangeBytes> bytes GUARDED_BY(mutex);
  };
  const auto waiting = std::make_shared<Waiting>();  // shared: the caller may leave before
  fetch_ranges(files, ranges, [waiting](RangeBytes bytes) {
    MutexLock lock(waiting->mutex);
    waiting->bytes = std::move(bytes);
    waiting->changed.notify_all();
  });
  const ReadDeadline* const deadline = ReadDeadline::of_thread();
  MutexLock lock(waiting->mutex);
  while (!waiting->bytes) {
    if (deadline && deadline->is_over()) {
      return deadline->error(files.path(ranges.front().file),
                             static_cast<int64_t>(ranges.front().offset));
    }
    ReadDeadline::wait(waiting->changed, waiting->mutex);
  }
  return std::move(*waiting->bytes);
}

}  // namespace headrace
