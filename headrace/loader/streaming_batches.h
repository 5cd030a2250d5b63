// SPDX-License-Identifier: Apache-2.0
// Batches from the engine, which reads, decodes and transforms each record when it is needed.
#pragma once

#include <memory>
#include <string>

#include "headrace/base/mutex.h"
#include "headrace/loader/batch_maker.h"

namespace headrace {

class StreamingBatches final : public BatchMaker {
 public:
  // bad_records: of the loader; must outlive this object. why_not_resident: the result of
  // resident_text().
  StreamingBatches(EngineOptions options, BadRecords& bad_records, std::string why_not_resident);

  void prepare() override { engine(); }
  bool load_resident(const InterruptCheck&) override { return false; }
  void start(int64_t epoch, int64_t batch, const InterruptCheck& check_interrupt) override {
    engine()->start(epoch, batch, check_interrupt);
  }
  std::optional<Batch> next(const InterruptCheck& check_interrupt) override {
    return engine()->next(check_interrupt);
  }
  bool delivers() override { return engine()->delivers(); }
  void stop(const InterruptCheck& check_interrupt) override;
  Batch make(int64_t epoch, int64_t batch) override { return engine()->make(epoch, batch); }
  void reseed(uint64_t seed) override EXCLUDES_LOCK(mutex_);
  std::shared_ptr<Engine> engine_for_rows(bool made) override {
    return made ? engine() : engine_if_any();
  }
  MakerStats stats() const override;
  std::string resident_text() const override { return why_not_resident_; }
  void close() override EXCLUDES_LOCK(mutex_);

 private:
  std::shared_ptr<Engine> engine() EXCLUDES_LOCK(mutex_);
  std::shared_ptr<Engine> engine_if_any() const EXCLUDES_LOCK(mutex_);

  BadRecords& bad_records_;
  const std::string why_not_resident_;
  mutable Mutex mutex_;
  EngineOptions options_ GUARDED_BY(mutex_);
  // Created with the first batch: a loader that only plans has no threads. shared: with calls of
  // other threads that are in progress when the engine is closed.
  std::shared_ptr<Engine> engine_ GUARDED_BY(mutex_);
};

}  // namespace headrace
