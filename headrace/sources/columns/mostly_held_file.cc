// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/columns/mostly_held_file.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/storage/async_storage.h"

namespace headrace {
namespace {

class MostlyHeldFile final : public OpenFile {
 public:
  MostlyHeldFile(File file, const FileIdentity& identity, uint64_t max_bytes,
                 std::function<void()> tell)
      : file_(std::move(file)),
        identity_(identity),
        max_bytes_(max_bytes),
        tell_(std::move(tell)) {}
  using OpenFile::read;
  uint64_t size() const override { return file_.size(); }
  Result<FileIdentity> identity() const override { return identity_; }
  std::optional<FileIdentity> known() const override { return identity_; }
  Result<void> read(uint64_t offset, std::span<uint8_t> out) const override {
    MutexLock lock(mutex_);
    if (whole_.size() == 0) {
      if (++reads_ <= kFew) return file_.read(offset, out);
      if (reads_ == kFew + 1) tell_();
      if (size() > max_bytes_) return file_.read(offset, out);
      AsyncRead read =
          read_and_wait(storage_of(file_.path()), {.piece = {file_.path(), 0, size(), identity_}});
      if (!read.result) return std::move(read.result.error());
      whole_ = std::move(read.bytes);
    }
    if (offset > whole_.size() || out.size() > whole_.size() - offset) {
      return file_.read(offset, out);  // reports it
    }
    std::ranges::copy(whole_.bytes().subspan(offset, out.size()), out.begin());
    return {};
  }

 private:
  static constexpr int kFew = 16;
  const File file_;
  const FileIdentity identity_;
  const uint64_t max_bytes_;
  const std::function<void()> tell_;
  mutable Mutex mutex_;
  mutable int reads_ GUARDED_BY(mutex_) = 0;
  mutable Buffer whole_ GUARDED_BY(mutex_);
};

}  // namespace

File mostly_held_file(File file, const FileIdentity& identity, uint64_t max_bytes,
                      std::function<void()> tell) {
  std::string path = file.path();
  return File::around(std::move(path), std::make_unique<MostlyHeldFile>(
                                           std::move(file), identity, max_bytes, std::move(tell)));
}

}  // namespace headrace
