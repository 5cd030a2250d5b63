// SPDX-License-Identifier: Apache-2.0
// Makes a loader's batches: the engine, record by record (streaming_batches.h), or sets of
// records in memory, from which batches are sliced (resident_batches.h).
//
// The batches are equal bit for bit; the loader knows no more than this. start, next,
// load_resident and reseed are called by the one thread that moves the loader; make, stats,
// engine_for_rows and stop also by others meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "headrace/executor/engine.h"

namespace headrace {

// Called every 50 ms while a call waits; may throw (a signal arrived), upon which the call may be
// made again.
using Interrupted = std::function<void()>;

struct MakerStats : EngineStats {
  size_t resident_bytes = 0;  // of memory_used, for records that stay
};

class BatchMaker {
 public:
  virtual ~BatchMaker() = default;

  // Throws Exception HR0702 where the memory is too small for batches. Starts the threads.
  virtual void prepare() = 0;
  // Makes what is to stay in memory, once; nothing where nothing is. True where batches lie on the
  // device that was asked for.
  virtual bool load_resident(const Interrupted& interrupted) = 0;

  // next() gives this batch of this epoch, and those that follow.
  virtual void start(int64_t epoch, int64_t batch, const Interrupted& interrupted) = 0;
  // Nothing after the epoch's last. Throws the batch's error.
  virtual std::optional<Batch> next(const Interrupted& interrupted) = 0;
  // False when a batch was lost on its way to the consumer: start() again from there.
  virtual bool delivers() = 0;
  // Returns when nobody is at a record any more.
  virtual void stop(const Interrupted& interrupted) = 0;

  // One batch by its number, here and now, apart from start() and next().
  virtual Batch make(int64_t epoch, int64_t batch) = 0;
  // Draws and orders are those of another seed from now on. REQUIRES: stopped.
  virtual void reseed(uint64_t seed) = 0;

  // The engine that makes them record by record; null: none does now. shared: with calls that are
  // under way when it goes. made: it is made where there is none yet.
  virtual std::shared_ptr<Engine> engine_for_rows(bool made) = 0;

  virtual MakerStats stats() const = 0;
  // "off", "49.2 MiB after Resize (auto: at most 512 MiB, half of memory_limit)"
  virtual std::string resident_text() const = 0;
  // Frees what it holds; batches that are kept stay valid.
  virtual void close() = 0;
};

}  // namespace headrace
