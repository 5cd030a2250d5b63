// SPDX-License-Identifier: Apache-2.0
#include "headrace/loader/streaming_batches.h"

#include <utility>

namespace headrace {

StreamingBatches::StreamingBatches(EngineOptions options, BadRecords& bad_records,
                                   std::string why_not_resident)
    : bad_records_(bad_records),
      why_not_resident_(std::move(why_not_resident)),
      options_(std::move(options)) {}

std::shared_ptr<Engine> StreamingBatches::engine() {
  MutexLock lock(mutex_);
  if (!engine_) engine_ = std::make_shared<Engine>(options_, bad_records_);
  return engine_;
}

std::shared_ptr<Engine> StreamingBatches::engine_if_any() const {
  MutexLock lock(mutex_);
  return engine_;
}

void StreamingBatches::stop(const InterruptCheck& check_interrupt) {
  if (const std::shared_ptr<Engine> engine = engine_if_any()) engine->stop(check_interrupt);
}

void StreamingBatches::reseed(uint64_t seed) {
  close();
  MutexLock lock(mutex_);
  options_.task.seed = seed;
}

MakerStats StreamingBatches::stats() const {
  const std::shared_ptr<Engine> engine = engine_if_any();
  return {engine ? engine->stats() : EngineStats{}};
}

void StreamingBatches::close() {
  std::shared_ptr<Engine> dropped;  // destroyed without the lock, since it joins threads
  MutexLock lock(mutex_);
  dropped.swap(engine_);
}

}  // namespace headrace
