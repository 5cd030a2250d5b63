// SPDX-License-Identifier: Apache-2.0
// The interface of what makes a loader's batches: the engine, record by record
// (streaming_batches.h), or sets of records in memory, from which batches are sliced
// (resident_batches.h).
//
// The batches are equal bit for bit, and the loader only uses this interface. start, next,
// load_resident and reseed are called by the thread that advances the loader; make, stats,
// engine_for_rows and stop may be called by other threads at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "headrace/executor/engine.h"

namespace headrace {

// Called every 50 ms while a call waits; may throw (a signal arrived); then the call can be
// repeated.
using InterruptCheck = std::function<void()>;

struct MakerStats : EngineStats {
  size_t resident_bytes = 0;  // part of memory_used: resident records
};

class BatchMaker {
 public:
  virtual ~BatchMaker() = default;

  // Starts the threads. Throws Exception HR0702 if the memory is too small for batches.
  virtual void prepare() = 0;
  // Makes the resident records, once; does nothing if there are none. True if batches are on the
  // requested device.
  virtual bool load_resident(const InterruptCheck& check_interrupt) = 0;

  // From now on next() returns this batch of this epoch, and those that follow.
  virtual void start(int64_t epoch, int64_t batch, const InterruptCheck& check_interrupt) = 0;
  // Nothing after the epoch's last. Throws the batch's error.
  virtual std::optional<Batch> next(const InterruptCheck& check_interrupt) = 0;
  // False if a batch was lost on its way to the consumer: call start() again with that batch.
  virtual bool delivers() = 0;
  // Returns when no thread works on a record any more.
  virtual void stop(const InterruptCheck& check_interrupt) = 0;

  // Makes one batch by its number, on the calling thread, independently of start() and next().
  virtual Batch make(int64_t epoch, int64_t batch) = 0;
  // Uses another seed for draws and orders from now on. REQUIRES: stopped.
  virtual void reseed(uint64_t seed) = 0;

  // The engine that makes batches record by record; null: there is none now. made: creates it if
  // there is none yet. shared: with calls that are in progress when it is destroyed.
  virtual std::shared_ptr<Engine> engine_for_rows(bool made) = 0;

  virtual MakerStats stats() const = 0;
  // "off", "49.2 MiB after Resize (auto: at most 512 MiB, half of memory_limit)"
  virtual std::string resident_text() const = 0;
  // Frees its memory; batches that the consumer keeps stay valid.
  virtual void close() = 0;
};

}  // namespace headrace
