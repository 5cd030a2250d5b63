// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/scanned_file.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "headrace/base/mutex.h"

namespace headrace {
namespace {

constexpr int kHops = 1;         // consecutive short reads before more is read than requested
constexpr size_t kMaxAhead = 3;  // large reads

// A large read, in progress or complete.
struct Piece {
  uint64_t number = 0;  // index of this read, in units of kScanBytes
  Mutex mutex;
  Condition changed;
  std::optional<AsyncRead> arrived GUARDED_BY(mutex);

  std::optional<AsyncRead> taken;  // state of the reading thread

  AsyncRead& wait() EXCLUDES_LOCK(mutex) {
    if (!taken) {
      MutexLock lock(mutex);
      while (!arrived) changed.wait(mutex);
      taken = std::move(arrived);
    }
    return *taken;
  }
};

class ScannedFile final : public OpenFile {
 public:
  ScannedFile(std::string path, std::unique_ptr<OpenFile> file)
      : path_(std::move(path)), file_(std::move(file)), identity_(*file_->known()) {}

  using OpenFile::read;
  uint64_t size() const override { return file_->size(); }
  Result<FileIdentity> identity() const override { return file_->identity(); }
  std::optional<FileIdentity> known() const override { return file_->known(); }

  Result<void> read(uint64_t offset, std::span<uint8_t> out) const override {
    if (!is_near(offset, out.size()) && !is_here(offset, out.size())) {
      return file_->read(offset, out);
    }
    while (!out.empty()) {
      const uint64_t number = offset / kScanBytes, skipped = offset % kScanBytes;
      AsyncRead& piece = piece_of(number);
      if (!piece.result) return piece.result.error();
      const size_t count = std::min<uint64_t>(out.size(), piece.bytes.size() - skipped);
      std::memcpy(out.data(), piece.bytes.data() + skipped, count);
      offset += count;
      out = out.subspan(count);
    }
    return {};
  }

 private:
  // Whether the large read used last contains the range: overlapping windows may read it again.
  bool is_here(uint64_t offset, uint64_t bytes) const {
    if (!here_ || bytes == 0 || offset > size() || bytes > size() - offset) return false;
    const uint64_t first = offset / kScanBytes, last = (offset + bytes - 1) / kScanBytes;
    return first == here_->number && last == here_->number;
  }

  // Whether a large read is worthwhile. A single read elsewhere does not end sequential reading.
  bool is_near(uint64_t offset, uint64_t bytes) const {
    if (offset > size() || bytes > size() - offset || bytes >= kScanBytes) return false;
    for (const uint64_t from : {reached_, looked_at_}) {
      if (offset < from || offset - from > kScanBytes) continue;
      reached_ = looked_at_ = offset + bytes;
      return ++hops_ > kHops;
    }
    if (offset > looked_at_) hops_ = 0;
    looked_at_ = offset + bytes;
    return false;
  }

  AsyncRead& piece_of(uint64_t number) const {
    if (!here_ || here_->number != number) {
      const bool goes_on = here_ && here_->number + 1 == number;
      if (goes_on && here_->taken) spare_ = std::move(here_->taken->bytes);
      if (!goes_on) next_.clear();
      if (next_.empty()) {
        here_ = ask(number);
      } else {
        here_ = std::move(next_.front());
        next_.pop_front();
      }
      // Only one read ahead at first: the reader may need only the beginning.
      const size_t ahead = goes_on ? kMaxAhead : 1;
      for (uint64_t after = number + 1 + next_.size();
           next_.size() < ahead && after * kScanBytes < size(); ++after) {
        next_.push_back(ask(after));
      }
    }
    return here_->wait();
  }

  std::shared_ptr<Piece> ask(uint64_t number) const {
    auto piece = std::make_shared<Piece>();  // shared: with the read in progress
    piece->number = number;
    const uint64_t begin = number * kScanBytes;
    std::vector<AsyncRead> one(1);
    one[0].piece = {.path = path_,
                    .offset = begin,
                    .bytes = std::min(kScanBytes, size() - begin),
                    .known = identity_};
    one[0].bytes = std::move(spare_);  // reuses memory that is already paged in
    one[0].done = [piece](AsyncRead done) {
      MutexLock lock(piece->mutex);
      piece->arrived = std::move(done);
      piece->changed.notify_all();
    };
    storage_of(path_).submit(std::move(one));
    return piece;
  }

  const std::string path_;
  const std::unique_ptr<OpenFile> file_;
  const FileIdentity identity_;
  // State of the reading thread.
  mutable uint64_t reached_ = 0, looked_at_ = 0;
  mutable int hops_ = 0;
  mutable Buffer spare_;
  mutable std::shared_ptr<Piece> here_;
  mutable std::deque<std::shared_ptr<Piece>> next_;  // the following pieces
};

}  // namespace

std::unique_ptr<OpenFile> scanned_file(std::string path, std::unique_ptr<OpenFile> file) {
  return std::make_unique<ScannedFile>(std::move(path), std::move(file));
}

}  // namespace headrace
