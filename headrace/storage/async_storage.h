// SPDX-License-Identifier: Apache-2.0
// Base class of asynchronous storages. A subclass sends one request and passes on its answer, at
// any time and of any length. This class requests the rest after short answers, retries after a
// pause if the error may be temporary, and makes synchronous reads wait.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/storage/scatter_target.h"
#include "headrace/storage/storage.h"

namespace headrace {

// A read whose bytes go directly to `places` (the size of the piece) instead of `read.bytes`. The
// memory must live until `read.done` is called.
struct ScatterRead {
  AsyncRead read;
  ScatterTarget places;
};

class AsyncStorage : public Storage {
 public:
  bool is_async() const final { return true; }
  // Through the block cache, if one is in use (block_cache.h).
  void submit(std::vector<AsyncRead> reads) const final;
  void submit_scattered(std::vector<ScatterRead> reads) const;
  // The version of a file, as last listed, inspected or read, if it is known without a request: the
  // block cache serves a whole file only if it has this version.
  virtual std::optional<FileIdentity> version_of(const std::string& path) const {
    (void)path;
    return {};
  }
  // These bytes will be read soon: the cache may fetch them.
  void will_read(const FilePiece& piece) const;
  Result<std::unique_ptr<OpenFile>> open(const std::string& path,
                                         const FileIdentity* known) const final;
  // Both use bytes that are staged on this thread (staged_reads.h).
  Result<void> read_file(const std::string& path, Buffer& out,
                         const ReadLimits& limits) const final;
  Result<size_t> read_prefix(const std::string& path, std::span<uint8_t> out) const final;
  // The bytes that look_at_ends() of remote files and opening a pack request.
  static constexpr uint64_t kFirstBytes = uint64_t{64} << 10, kLastBytes = uint64_t{256} << 10;

 protected:
  struct Answer {
    uint64_t size = 0;                       // of the file, if there is no error
    size_t got = 0;                          // bytes written after the existing ones
    int error_number = 0;                    // an errno; 0 if there is no error
    std::string words{};                     // replaces the system's error text, unless empty
    Result<void> failure{};                  // a permanent error, with its own text
    std::optional<FileIdentity> identity{};  // of a file that is read whole, if it has a version
  };
  // The missing part of a read. size() is the total number of bytes requested; if a whole file is
  // read, the first answer determines it, unless the file has more than `max_bytes`.
  struct Request {
    const FilePiece& piece;
    uint64_t max_bytes;
    Buffer& bytes;
    const ScatterTarget& places;  // instead of `bytes`; empty, unless supports_scatter()
    uint64_t begin;               // number of bytes read so far
    bool sized;
    const std::stop_token& unneeded;  // AsyncRead::unneeded
    uint64_t size() const { return places.empty() ? bytes.size() : places.size(); }
  };
  // Whether ask() uses `places`. Otherwise the bytes read are copied there.
  virtual bool supports_scatter() const { return false; }
  // Sends the request. `answer` is called once, from any thread; everything that the request refers
  // to lives until then. If ask() throws, `answer` is not called.
  virtual void ask(const Request& request, std::function<void(Answer)> answer) const = 0;
  // Where the next bytes of the answer go, for a file of this size; allocates the memory if a whole
  // file is read. Empty if no byte is missing, or `answer` has an error.
  static std::span<uint8_t> room_for(const Request& request, uint64_t file_bytes, Answer& answer);
  // Calls it on a thread shared by all storages, which must not block.
  static void call_later(double seconds, std::function<void()> call);

 private:
  struct Flight;
  void submit_remote(std::vector<AsyncRead> reads) const;
  void read_and_copy(const std::shared_ptr<Flight>& flight) const;
  void go_on(std::shared_ptr<Flight> flight) const;
  void arrived(std::shared_ptr<Flight> flight, Answer answer) const;
  void take(const std::shared_ptr<Flight>& flight, Answer answer) const;
};

// Submits the read and waits for it.
AsyncRead read_and_wait(const Storage& storage, AsyncRead read);
// The same for several at once: each with its own result, in the same order.
std::vector<AsyncRead> read_and_wait(const Storage& storage, std::vector<AsyncRead> reads);

}  // namespace headrace
