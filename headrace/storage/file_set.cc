// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/file_set.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/storage/async_storage.h"
#include "headrace/storage/read_deadline.h"
#include "headrace/storage/storage_errors.h"

namespace headrace {
namespace {

constexpr int64_t kClosing = std::numeric_limits<int64_t>::min() / 2;

}  // namespace

// Keeps a slot's file from being closed while it is read.
class FileSet::Use {
 public:
  explicit Use(Slot& slot) : slot_(slot), held_(slot.users.fetch_add(1) >= 0) {
    if (!held_) slot_.users.fetch_sub(1);
  }
  ~Use() {
    if (held_) slot_.users.fetch_sub(1);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  const File* file() const { return held_ ? slot_.file.load() : nullptr; }

 private:
  Slot& slot_;
  bool held_;
};

FileSet::FileSet(std::vector<std::string> paths, size_t max_open)
    : paths_(std::move(paths)), max_open_(max_open), slots_(new Slot[paths_.size()]) {
  for (const std::string& path : paths_) {
    Result<FileIdentity> identity = identity_of(path);
    if (!identity) throw Exception(std::move(identity.error()));
    identities_.push_back(*identity);
    is_async_ |= headrace::is_async(path);
  }
  closes_ = paths_.size() > max_open_ || !IdleFiles::of_process().reserve(paths_.size());
  if (closes_) IdleFiles::of_process().add(this);
}

FileSet::~FileSet() {
  if (closes_) {
    while (close_one()) IdleFiles::of_process().closed();
    IdleFiles::of_process().remove(this);
    return;
  }
  for (size_t i = 0; i < paths_.size(); ++i) delete slots_[i].file.load();
  IdleFiles::of_process().release(paths_.size());
}

uint64_t FileSet::total_bytes() const {
  uint64_t bytes = 0;
  for (const FileIdentity& identity : identities_) bytes += identity.size;
  return bytes;
}

template <class Call>
Result<void> FileSet::with_open(size_t file, const Call& call) const {
  Slot& slot = slots_[file];
  // If all files may stay open, none is ever closed, and counting users would only add contention
  // between threads.
  for (;;) {
    if (const File* opened = closes_ ? nullptr : slot.file.load()) return call(*opened);
    if (closes_) {
      const Use use(slot);
      if (const File* opened = use.file()) {
        slot.last_used = IdleFiles::tick();
        return call(*opened);
      }
    }
    if (Result<void> opened = open(file); !opened) return opened;
  }
}

Result<void> FileSet::read(size_t file, uint64_t offset, std::span<uint8_t> out) const {
  return with_open(file, [&](const File& opened) { return opened.read(offset, out); });
}

Result<void> FileSet::read(size_t file, uint64_t offset,
                           std::span<const std::span<uint8_t>> parts) const {
  return with_open(file, [&](const File& opened) { return opened.read(offset, parts); });
}

void FileSet::will_read(size_t file, uint64_t offset, uint64_t bytes) const {
  (void)with_open(file, [&](const File& opened) {
    opened.will_read(offset, bytes);
    return Result<void>();
  });
}

// No lock is held while a file is opened, since that may wait and retry after a pause.
Result<void> FileSet::open(size_t file) const {
  Slot& slot = slots_[file];
  if (slot.file.load()) return {};
  if (closes_) {
    if (open_ >= max_open_ && close_one()) IdleFiles::of_process().closed();
    IdleFiles::of_process().opening();
  }
  Result<File> opened = File::open(paths_[file], &identities_[file]);
  const File* nothing = nullptr;
  if (opened) {
    auto held = std::make_unique<const File>(std::move(*opened));
    slot.last_used = IdleFiles::tick();
    if (slot.file.compare_exchange_strong(nothing, held.get())) {
      (void)held.release();
      ++open_;
      return {};
    }  // another thread was faster
  }
  if (closes_) IdleFiles::of_process().closed();
  if (!opened) return std::move(opened.error());
  return {};
}

FileSet::Slot* FileSet::oldest_slot() const {
  Slot* oldest = nullptr;
  for (size_t i = 0; i < paths_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.file.load() && slot.users.load() == 0 &&
        (!oldest || slot.last_used < oldest->last_used)) {
      oldest = &slot;
    }
  }
  return oldest;
}

uint64_t FileSet::oldest() const {
  const Slot* slot = open_ > 0 ? oldest_slot() : nullptr;
  return slot ? slot->last_used.load() : IdleFiles::kNone;
}

// Closes the least recently used file. If it is in use, one more than intended stays open.
bool FileSet::close_one() const {
  Slot* oldest = oldest_slot();
  int64_t none = 0;
  if (!oldest || !oldest->users.compare_exchange_strong(none, kClosing)) return false;
  const File* closed = oldest->file.exchange(nullptr);
  oldest->users.fetch_sub(kClosing);
  if (!closed) return false;  // another thread closed it
  delete closed;
  --open_;
  return true;
}

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

void submit(const FileSet& files, std::span<const FileRange> ranges,
            const std::stop_token& unneeded, const RangesPtr& all) {
  std::map<const AsyncStorage*, std::vector<ScatterRead>> reads;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const FileRange& range = ranges[i];
    const auto* const storage =
        dynamic_cast<const AsyncStorage*>(&storage_of(files.path(range.file)));
    for (uint64_t at = 0; storage && at < range.bytes; at += kRequestBytes) {
      const uint64_t count = std::min(kRequestBytes, range.bytes - at);
      ScatterRead one{.read = {.piece = files.piece(range.file, range.offset + at, count),
                               .unneeded = unneeded},
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
                  std::function<void(RangeBytes)> done, const std::stop_token& unneeded) {
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
  submit(files, ranges, unneeded, all);
}

RangeBytes read_ranges(const FileSet& files, std::span<const FileRange> ranges) {
  struct Waiting {
    Mutex mutex;
    Condition changed;
    std::optional<RangeBytes> bytes GUARDED_BY(mutex);
  };
  const auto waiting = std::make_shared<Waiting>();  // shared: the caller may leave before
  std::stop_source unneeded;
  const auto arrived = [waiting](RangeBytes bytes) {
    MutexLock lock(waiting->mutex);
    waiting->bytes = std::move(bytes);
    waiting->changed.notify_all();
  };
  fetch_ranges(files, ranges, arrived, unneeded.get_token());
  {
    MutexLock lock(waiting->mutex);
    while (!waiting->bytes && !ReadWait::is_over()) {
      ReadWait::wait(waiting->changed, waiting->mutex);
    }
    if (waiting->bytes) return std::move(*waiting->bytes);
  }
  (void)unneeded.request_stop();
  return ReadWait::error(files.path(ranges.front().file),
                         static_cast<int64_t>(ranges.front().offset));
}

}  // namespace headrace
