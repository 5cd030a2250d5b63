// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/async_storage.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/base/mutex.h"
#include "headrace/storage/block_cache.h"
#include "headrace/storage/delayed_calls.h"
#include "headrace/storage/read_deadline.h"
#include "headrace/storage/staged_reads.h"
#include "headrace/storage/storage_errors.h"

namespace headrace {
namespace {

class AsyncFile final : public OpenFile {
 public:
  AsyncFile(const AsyncStorage& storage, std::string path, FileIdentity identity)
      : storage_(storage), path_(std::move(path)), identity_(identity) {}

  uint64_t size() const override { return identity_.size; }
  Result<FileIdentity> identity() const override { return identity_; }
  std::optional<FileIdentity> known() const override { return identity_; }

  Result<void> read(uint64_t offset, std::span<uint8_t> out) const override {
    const std::span<uint8_t> one[] = {out};
    return read(offset, one);
  }

  Result<void> read(uint64_t offset, std::span<const std::span<uint8_t>> parts) const override {
    uint64_t bytes = 0;
    for (const std::span<uint8_t>& part : parts) bytes += part.size();
    if (offset > size() || bytes > size() - offset) {
      return ended_early_error(path_, offset + bytes, size());
    }
    if (bytes == 0) return {};
    if (const auto staged = StagedReads::find(path_, offset, bytes, &identity_)) {
      scatter(*staged, parts);
      return {};
    }
    AsyncRead read = read_and_wait(
        storage_, {.piece = {.path = path_, .offset = offset, .bytes = bytes, .known = identity_}});
    if (!read.result) return std::move(read.result);
    scatter(read.bytes.bytes(), parts);
    return {};
  }

  void will_read(uint64_t offset, uint64_t bytes) const override {
    storage_.will_read({.path = path_, .offset = offset, .bytes = bytes, .known = identity_});
  }

 private:
  static void scatter(std::span<const uint8_t> bytes, std::span<const std::span<uint8_t>> parts) {
    for (const std::span<uint8_t>& part : parts) {
      if (!part.empty()) std::memcpy(part.data(), bytes.data(), part.size());
      bytes = bytes.subspan(part.size());
    }
  }

  const AsyncStorage& storage_;
  const std::string path_;
  const FileIdentity identity_;
};

void land(AsyncRead& read, Result<void> result) {
  read.result = std::move(result);
  const auto done = std::move(read.done);
  done(std::move(read));
}

// Every read must be answered, otherwise its caller would wait forever: if there is not even memory
// for the error message, this is retried.
void fail_for_lack_of_memory(AsyncRead& read) {
  while (true) {
    try {
      return land(read, too_large_error(read.piece.path, read.bytes.size(),
                                        "more than the remaining memory"));
    } catch (const std::bad_alloc&) {
      std::this_thread::yield();
    }
  }
}

}  // namespace

// A read in progress.
struct AsyncStorage::Flight {
  AsyncRead read;
  ScatterTarget places = {};
  RetryCount tries = {};
  uint64_t begin = 0;
  bool sized = false;

  uint64_t wanted() const { return places.empty() ? read.bytes.size() : places.size(); }
  void land(Result<void> result) { headrace::land(read, std::move(result)); }
};

void AsyncStorage::call_later(double seconds, std::function<void()> call) {
  headrace::call_later(seconds, std::move(call));
}

std::span<uint8_t> AsyncStorage::room_for(const Request& request, uint64_t file_bytes,
                                          Answer& answer) {
  answer.size = file_bytes;
  if (!request.sized) {
    if (file_bytes > request.max_bytes) return {};
    try {
      request.bytes.resize(file_bytes);
    } catch (const std::bad_alloc&) {
      answer.failure =
          too_large_error(request.piece.path, file_bytes, "more than the remaining memory");
      return {};
    }
  }
  const uint64_t offset = request.piece.offset + request.begin;
  if (offset >= file_bytes) return {};
  return {request.bytes.data() + request.begin,
          std::min(file_bytes - offset, request.bytes.size() - request.begin)};
}

void AsyncStorage::submit(std::vector<AsyncRead> reads) const {
  if (BlockCache* const cache = BlockCache::in_use()) {
    cache->submit(
        std::move(reads), [this](std::vector<AsyncRead> far) { submit_remote(std::move(far)); },
        [this](const std::string& path) { return version_of(path); });
  } else {
    submit_remote(std::move(reads));
  }
}

void AsyncStorage::submit_scattered(std::vector<ScatterRead> reads) const {
  const bool copies = BlockCache::in_use() || !supports_scatter();
  for (ScatterRead& placed : reads) {
    std::shared_ptr<Flight> flight;  // shared: std::function must be copyable
    try {
      flight = std::make_shared<Flight>();
    } catch (const std::bad_alloc&) {
      fail_for_lack_of_memory(placed.read);
      continue;
    }
    flight->read = std::move(placed.read);
    flight->places = std::move(placed.places);
    flight->sized = true;
    if (copies) {
      read_and_copy(flight);
    } else {
      go_on(std::move(flight));
    }
  }
}

// Reads into separate memory, then copies to the destinations.
void AsyncStorage::read_and_copy(const std::shared_ptr<Flight>& flight) const {
  try {
    std::vector<AsyncRead> one(1);
    one[0].piece = flight->read.piece;
    one[0].unneeded = flight->read.unneeded;
    one[0].done = [flight](AsyncRead whole) {
      if (whole.result) flight->places.write(0, whole.bytes.bytes());
      flight->land(std::move(whole.result));
    };
    submit(std::move(one));
  } catch (const std::bad_alloc&) {
    fail_for_lack_of_memory(flight->read);
  }
}

void AsyncStorage::will_read(const FilePiece& piece) const {
  BlockCache* const cache = BlockCache::in_use();
  if (!cache) return;
  cache->will_read(piece, [this](std::vector<AsyncRead> far) { submit_remote(std::move(far)); });
}

void AsyncStorage::submit_remote(std::vector<AsyncRead> reads) const {
  for (AsyncRead& read : reads) {
    std::shared_ptr<Flight> flight;  // shared: std::function must be copyable
    try {
      const bool sized = read.piece.bytes != FilePiece::kWhole;
      if (sized) read.bytes.resize(read.piece.bytes);
      flight = std::make_shared<Flight>();
      flight->sized = sized;
    } catch (const std::bad_alloc&) {
      fail_for_lack_of_memory(read);
      continue;
    }
    flight->read = std::move(read);
    go_on(std::move(flight));
  }
}

// These two functions do not throw: they are called on the storage's threads.
void AsyncStorage::go_on(std::shared_ptr<Flight> flight) const {
  AsyncRead& read = flight->read;
  if (read.unneeded.stop_requested()) {
    return arrived(flight, {.error_number = ECANCELED});
  }
  const Request request{.piece = read.piece,
                        .max_bytes = read.max_bytes,
                        .bytes = read.bytes,
                        .places = flight->places,
                        .begin = flight->begin,
                        .sized = flight->sized,
                        .unneeded = read.unneeded};
  try {
    ask(request, [this, flight](Answer answer) { arrived(flight, std::move(answer)); });
  } catch (const std::exception&) {
    fail_for_lack_of_memory(read);
  }
}

void AsyncStorage::arrived(std::shared_ptr<Flight> flight, Answer answer) const {
  try {
    take(flight, std::move(answer));
  } catch (const std::exception&) {
    fail_for_lack_of_memory(flight->read);
  }
}

void AsyncStorage::take(const std::shared_ptr<Flight>& flight, Answer answer) const {
  const FilePiece& piece = flight->read.piece;
  if (!answer.failure) return flight->land(std::move(answer.failure));
  if (answer.error_number != 0) {
    const int milliseconds =
        answer.error_number == EINTR ? 0 : flight->tries.pause_before_next(answer.error_number);
    if (milliseconds < 0) {
      Error error = storage_error(answer.error_number, "read", piece.path,
                                  static_cast<int64_t>(piece.offset + flight->begin));
      if (!answer.words.empty()) error.what = "could not read it: " + answer.words;
      return flight->land(std::move(error));
    }
    return call_later(milliseconds * 1e-3, [this, flight] { go_on(flight); });
  }
  if (!flight->sized && answer.size > flight->read.max_bytes) {
    return flight->land(above_cap_error(piece.path, answer.size, flight->read.max_bytes));
  }
  // The rest, if any, has to be of the same version.
  if (!flight->sized && !piece.known) flight->read.piece.known = answer.identity;
  flight->sized = true;
  flight->begin += answer.got;
  const uint64_t wanted = flight->wanted();
  if (flight->begin >= wanted) return flight->land({});
  if (answer.got == 0) {
    return flight->land(
        ended_early_error(piece.path, piece.offset + wanted, piece.offset + flight->begin));
  }
  go_on(flight);
}

AsyncRead read_and_wait(const Storage& storage, AsyncRead read) {
  std::vector<AsyncRead> one;
  one.push_back(std::move(read));
  return std::move(read_and_wait(storage, std::move(one)).front());
}

std::vector<AsyncRead> read_and_wait(const Storage& storage, std::vector<AsyncRead> reads) {
  struct Waiting {
    Mutex mutex;
    Condition changed;
    std::vector<std::optional<AsyncRead>> arrived GUARDED_BY(mutex);
    size_t missing GUARDED_BY(mutex) = 0;
    bool left GUARDED_BY(mutex) = false;  // the caller has stopped waiting
  };
  const auto waiting = std::make_shared<Waiting>();  // shared: the caller may stop waiting earlier
  std::vector<FilePiece> pieces;
  std::stop_source unneeded;  // at the deadline
  for (size_t i = 0; i < reads.size(); ++i) {
    pieces.push_back(reads[i].piece);
    reads[i].unneeded = unneeded.get_token();
    reads[i].done = [waiting, i](AsyncRead done) {
      MutexLock lock(waiting->mutex);
      if (waiting->left) return;
      waiting->arrived[i] = std::move(done);
      if (--waiting->missing == 0) waiting->changed.notify_all();
    };
  }
  {
    MutexLock lock(waiting->mutex);
    waiting->arrived.resize(reads.size());
    waiting->missing = reads.size();
  }
  storage.submit(std::move(reads));
  std::vector<AsyncRead> out;
  {
    MutexLock lock(waiting->mutex);
    while (waiting->missing > 0 && !ReadWait::is_over()) {
      ReadWait::wait(waiting->changed, waiting->mutex);
    }
    waiting->left = true;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (waiting->arrived[i]) {
        out.push_back(std::move(*waiting->arrived[i]));
        continue;
      }
      Error error = ReadWait::error(pieces[i].path, static_cast<int64_t>(pieces[i].offset));
      out.push_back({.piece = std::move(pieces[i]), .result = std::move(error)});
    }
    if (waiting->missing == 0) return out;
  }
  (void)unneeded.request_stop();
  return out;
}

Result<std::unique_ptr<OpenFile>> AsyncStorage::open(const std::string& path,
                                                     const FileIdentity* known) const {
  FileIdentity identity;
  if (known) {
    identity = *known;
  } else {
    Result<PathStatus> status = look_at(path);
    if (!status) return std::move(status.error());
    if (status->kind != PathKind::kFile) {
      return not_regular_error(path, status->kind == PathKind::kFolder ? "a folder" : "something");
    }
    identity = status->identity;
  }
  return std::unique_ptr<OpenFile>(std::make_unique<AsyncFile>(*this, path, identity));
}

Result<void> AsyncStorage::read_file(const std::string& path, Buffer& out,
                                     const ReadLimits& limits) const {
  if (const auto staged = StagedReads::find(path, 0, FilePiece::kWhole, nullptr)) {
    if (staged->size() > limits.max_bytes) {
      return above_cap_error(path, staged->size(), limits.max_bytes);
    }
    if (StagedReads::take(path, 0, FilePiece::kWhole, nullptr, out)) return {};
    out.resize(staged->size());
    if (!staged->empty()) std::memcpy(out.data(), staged->data(), staged->size());
    return {};
  }
  AsyncRead read = read_and_wait(
      *this, {.piece = {.path = path}, .max_bytes = limits.max_bytes, .bytes = std::move(out)});
  out = std::move(read.bytes);
  return std::move(read.result);
}

Result<size_t> AsyncStorage::read_prefix(const std::string& path, std::span<uint8_t> out) const {
  Result<std::unique_ptr<OpenFile>> file = open(path, nullptr);
  if (!file) return std::move(file.error());
  const size_t count = std::min<uint64_t>(out.size(), (*file)->size());
  if (Result<void> read = (*file)->read(0, out.first(count)); !read) return std::move(read.error());
  return count;
}

}  // namespace headrace
