// SPDX-License-Identifier: Apache-2.0
#include "headrace/loader/resident_batches.h"

#include <utility>

#include "headrace/base/clock.h"

namespace headrace {

ResidentBatches::ResidentBatches(std::unique_ptr<Residence> residence, EngineOptions options,
                                 BadRecords& bad_records)
    : residence_(std::move(residence)),
      options_(std::move(options)),
      bad_records_(bad_records),
      by_engine_(streaming()) {}

std::shared_ptr<StreamingBatches> ResidentBatches::by_engine() const {
  MutexLock lock(mutex_);
  return by_engine_;
}

// Makes batches with the engine, from the current files.
std::shared_ptr<StreamingBatches> ResidentBatches::streaming() const {
  EngineOptions options = options_;
  options.memory_limit -= residence_->bytes();
  if (const std::shared_ptr<const ResidentSource> records = residence_->source()) {
    options.task.source = records;
    options.task.plan = residence_->plan();
  }
  return std::make_shared<StreamingBatches>(std::move(options), bad_records_, std::string());
}

bool ResidentBatches::load_resident(const InterruptCheck& check_interrupt) {
  if (residence_->is_on() && !residence_->is_prepared()) {
    by_engine()->close();  // it holds the memory that the records will need
    files_.emplace(options_.task.source, options_.task.plan->wanted());  // before they are read
    residence_->prepare(options_.task.source, options_.warn, check_interrupt);
    replace(streaming());
  }
  return residence_->is_on_device();
}

// Warns, once, if a file that records were read from has changed.
void ResidentBatches::look_at_files() {
  if (!files_ || !residence_->is_on()) return;
  const std::optional<std::string> changed = files_->changed();
  if (!changed) return;
  files_.reset();
  if (!options_.warn) return;
  options_.warn("resident records are out of date: " + *changed +
                " has changed since it was read, but batches have its old contents. Reopen the "
                "source to read it again.");
}

void ResidentBatches::start(int64_t epoch, int64_t batch, const InterruptCheck& check_interrupt) {
  load_resident(check_interrupt);
  look_at_files();
  epoch_ = epoch;
  batch_ = batch;
  if (!residence_->cuts()) by_engine()->start(epoch, batch, check_interrupt);
}

std::optional<Batch> ResidentBatches::next(const InterruptCheck& check_interrupt) {
  if (!residence_->cuts()) return by_engine()->next(check_interrupt);
  if (batch_ >= options_.task.layout.batches()) return std::nullopt;
  const double begin = now();
  std::optional<Batch> batch =
      residence_->cut(options_.task.seed, static_cast<uint64_t>(epoch_), batch_);
  if (!batch) {
    by_engine()->start(epoch_, batch_, check_interrupt);
    return by_engine()->next(check_interrupt);
  }
  ++batch_;
  cut_seconds_ = cut_seconds_ + now() - begin;
  ++cut_batches_;
  cut_records_ += batch->size;
  return batch;
}

void ResidentBatches::reseed(uint64_t seed) {
  options_.task.seed = seed;
  by_engine()->reseed(seed);
}

MakerStats ResidentBatches::stats() const {
  MakerStats out = by_engine()->stats();
  const ResidentStats cut = residence_->stats();
  out.batches += cut_batches_;
  out.records += cut_records_;
  out.copies += cut.beyond;
  out.wait_seconds += cut_seconds_;
  out.resident_bytes = residence_->source() ? residence_->bytes() : 0;
  out.memory_used += out.resident_bytes + cut.batch_bytes;
  out.memory_peak += out.resident_bytes + cut.batch_bytes;
  return out;
}

void ResidentBatches::close() {
  by_engine()->close();
  residence_->drop();
  files_.reset();
  replace(streaming());  // the previous engine held the records
}

void ResidentBatches::replace(std::shared_ptr<StreamingBatches> by_engine) {
  MutexLock lock(mutex_);
  by_engine_.swap(by_engine);  // the previous one is destroyed without the lock
}

}  // namespace headrace
