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

FileSet::FileSet(std::vector<std::string> paths, size_t most_open)
    : paths_(std::move(paths)), most_open_(most_open), slots_(new Slot[paths_.size()]) {
  for (const std::string& path : paths_) {
    Result<FileIdentity> identity = identity_of(path);
    if (!identity) throw Exception(std::move(identity.error()));
    identities_.push_back(*identity);
    answers_later_ |= headrace::answers_later(path);
  }
}

FileSet::~FileSet() {
  for (size_t i = 0; i < paths_.size(); ++i) delete slots_[i].file.load();
}

uint64_t FileSet::total_bytes() const {
  uint64_t bytes = 0;
  for (const FileIdentity& identity : identities_) bytes += identity.size;
  return bytes;
}

template <class Call>
Result<void> FileSet::with_open(size_t file, const Call& call) const {
  Slot& slot = slots_[file];
  // Where all may stay open none is ever closed, and counting users would only be one more thing
  // that threads pass to and fro.
  const bool closes = paths_.size() > most_open_;
  for (;;) {
    if (const File* opened = closes ? nullptr : slot.file.load()) return call(*opened);
    if (closes) {
      const Use use(slot);
      if (const File* opened = use.file()) {
        slot.last_used = ++clock_;
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

Result<void> FileSet::open(size_t file) const {
  Slot& slot = slots_[file];
  MutexLock lock(mutex_);
  if (slot.file.load()) return {};
  Result<File> opened = File::open(paths_[file], &identities_[file]);
  if (!opened) return std::move(opened.error());
  if (open_ >= most_open_) close_one();
  slot.last_used = ++clock_;
  slot.file = new File(std::move(*opened));
  ++open_;
  return {};
}

// The file that was not used for longest. Where all are in use, one more than wanted stays open.
void FileSet::close_one() const {
  Slot* oldest = nullptr;
  for (size_t i = 0; i < paths_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.file.load() && slot.users.load() == 0 &&
        (!oldest || slot.last_used < oldest->last_used)) {
      oldest = &slot;
    }
  }
  int64_t nobody = 0;
  if (!oldest || !oldest->users.compare_exchange_strong(nobody, kClosing)) return;
  delete oldest->file.exchange(nullptr);
  oldest->users.fetch_sub(kClosing);
  --open_;
}

}  // namespace headrace
