// SPDX-License-Identifier: Apache-2.0
// Batches of records that stay in memory (delivery/residence.h): sliced on the host or on a device
// if possible; otherwise made by the engine, which runs the rest of the pipeline on the records.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "headrace/delivery/residence.h"
#include "headrace/loader/streaming_batches.h"
#include "headrace/sources/files_read.h"

namespace headrace {

class ResidentBatches final : public BatchMaker {
 public:
  // options: of a streaming engine; their memory limit is for the whole loader, including resident
  // records.
  // bad_records: as for StreamingBatches.
  ResidentBatches(std::unique_ptr<Residence> residence, EngineOptions options,
                  BadRecords& bad_records);

  void prepare() override { by_engine()->prepare(); }
  bool load_resident(const InterruptCheck& check_interrupt) override;
  void start(int64_t epoch, int64_t batch, const InterruptCheck& check_interrupt) override;
  std::optional<Batch> next(const InterruptCheck& check_interrupt) override;
  bool delivers() override { return residence_->cuts() || by_engine()->delivers(); }
  void stop(const InterruptCheck& check_interrupt) override { by_engine()->stop(check_interrupt); }
  Batch make(int64_t epoch, int64_t batch) override { return by_engine()->make(epoch, batch); }
  void reseed(uint64_t seed) override;
  std::shared_ptr<Engine> engine_for_rows(bool) override { return nullptr; }  // no rows are lent
  MakerStats stats() const override;
  std::string resident_text() const override { return residence_->text(); }
  void close() override;

 private:
  void look_at_files();
  std::shared_ptr<StreamingBatches> by_engine() const EXCLUDES_LOCK(mutex_);
  std::shared_ptr<StreamingBatches> streaming() const;
  void replace(std::shared_ptr<StreamingBatches> by_engine) EXCLUDES_LOCK(mutex_);

  const std::unique_ptr<Residence> residence_;
  std::optional<FilesRead> files_;  // sources of the records, until one has changed
  EngineOptions options_;
  BadRecords& bad_records_;
  int64_t epoch_ = 0, batch_ = 0;  // to be made next
  // Also read by stats(), on other threads.
  std::atomic<double> cut_seconds_ = 0;
  std::atomic<int64_t> cut_batches_ = 0, cut_records_ = 0;
  mutable Mutex mutex_;
  // Reads the source, or the resident records once they are loaded. shared: with calls of other
  // threads that are in progress when it is replaced.
  std::shared_ptr<StreamingBatches> by_engine_ GUARDED_BY(mutex_);
};

}  // namespace headrace
