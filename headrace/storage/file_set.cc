// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/file_set.h"

#include <limits>

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
    answers_later_ |= headrace::is_async(path);
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

}  // namespace headrace
