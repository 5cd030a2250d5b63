// SPDX-License-Identifier: Apache-2.0
// Shared by asynchronous storages: a subclass sends one request and hands over its answer, at any
// time and of any length. This requests the rest of short answers, tries again after a pause if the
// error may be temporary, and blocks a thread that reads by itself.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/storage/byte_places.h"
#include "headrace/storage/storage.h"

namespace headrace {

// A read whose bytes go where they are wanted, as many as its piece has, and not into `read.bytes`.
// The memory lives until `read.done` is called.
struct PlacedRead {
  LaterRead read;
  BytePlaces places;
};

class LaterStorage : public Storage {
 public:
  bool answers_later() const final { return true; }
  // Through the cache of blocks, where one is in use (block_cache.h).
  void submit(std::vector<LaterRead> reads) const final;
  void submit_placed(std::vector<PlacedRead> reads) const;
  // These bytes will be read soon: the cache may fetch them.
  void will_read(const FilePiece& piece) const;
  Result<std::unique_ptr<OpenFile>> open(const std::string& path,
                                         const FileIdentity* known) const final;
  // Both take what is staged on this thread (staged_reads.h).
  Result<void> read_file(const std::string& path, Buffer& out,
                         const ReadLimits& limits) const final;
  Result<size_t> read_prefix(const std::string& path, std::span<uint8_t> out) const final;

 protected:
  struct Answer {
    uint64_t size = 0;       // of the file, where nothing is wrong
    size_t got = 0;          // bytes that were written after those that were there
    int error_number = 0;    // as errno has it; 0 where nothing is wrong
    std::string words{};     // instead of the system's for it, where the storage has some
    Result<void> failure{};  // wrong for good, in words of its own
  };
  // What is still missing of a read. size() is all that is wanted, except where a whole
  // file is read: then the first answer sizes it, unless the file has more than `max_bytes`.
  struct Request {
    const FilePiece& piece;
    uint64_t max_bytes;
    Buffer& bytes;
    const BytePlaces& places;  // instead of `bytes`; empty, unless takes_places()
    uint64_t begin;            // how many are there already
    bool sized;
    uint64_t size() const { return places.empty() ? bytes.size() : places.size(); }
  };
  // Whether ask() heeds `places`. What a storage without it reads is copied there.
  virtual bool takes_places() const { return false; }
  // Sends it; all that it refers to lives until `answer` was called, once, from any thread. Where
  // it throws, `answer` is not called.
  virtual void ask(const Request& request, std::function<void(Answer)> answer) const = 0;
  // Where the next bytes of the answer go, of a file of this size: a whole file's memory is made
  // first. Empty where no byte is missing, or `answer` says what is wrong.
  static std::span<uint8_t> room_for(const Request& request, uint64_t file_bytes, Answer& answer);
  // On one thread that all storages share, which must not be kept waiting.
  static void call_later(double seconds, std::function<void()> call);

 private:
  struct Flight;
  void submit_far(std::vector<LaterRead> reads) const;
  void read_and_copy(const std::shared_ptr<Flight>& flight) const;
  void go_on(std::shared_ptr<Flight> flight) const;
  void arrived(std::shared_ptr<Flight> flight, Answer answer) const;
  void take(const std::shared_ptr<Flight>& flight, Answer answer) const;
};

// Submits the read and waits for it.
LaterRead read_and_wait(const Storage& storage, LaterRead read);

}  // namespace headrace
