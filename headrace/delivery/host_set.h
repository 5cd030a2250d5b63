// SPDX-License-Identifier: Apache-2.0
// A dataset in the host's memory, sliced into batches there, partly ahead of time.
//
//   take(n): the consumer ──┐
//                           ├─ pieces of batch n, then of n + 1, ... ──> rings of memory ──> Batch
//   the process's workers ──┘     (as far as the rings have memory)
//
// A piece is some rows of a batch. Making it computes the record numbers and draws of the rows, and
// copies each value to the batch in one pass. Any free thread takes the next piece: `threads` - 1
// workers, and the consumer until its batch is done. So no thread spins, the consumer only sleeps
// while other threads do the last pieces, and with one thread it makes all of them. Small batches
// are always made by the consumer: waking another thread takes longer.
//
// Batches are copies, because what the consumer does to a batch must not change the data; with
// `view` they are slices of the data itself. Each field has its own ring, so keeping labels keeps
// no images.
//
// take() may be called by one thread at a time; batches may be kept and dropped on any thread, also
// after the set is destroyed.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/delivery/device_steps.h"
#include "headrace/delivery/resident_field.h"
#include "headrace/executor/memory/slots.h"
#include "headrace/executor/threads/thread_pool.h"
#include "headrace/kernels/batch/edit_on_host.h"
#include "headrace/sampling/batch_layout.h"
#include "headrace/sampling/sampler.h"

namespace headrace {

struct HostSetOptions {
  SamplerPtr sampler;
  BatchLayout layout;
  bool view = false;  // REQUIRES: a sampler in order, no padding, no steps
  // The plan whose steps change the `edited` fields; null: none. shared: with the loader
  std::shared_ptr<const Plan> steps = {};
  MemoryFormat memory_format = MemoryFormat::kChannelsFirst;  // of pictures that the steps change
  int threads = 1;        // that make batches, including the consumer's
  int batches = 4;        // per ring
  DevicePtr device = {};  // target of copies: memory is pinned for it
};

class HostSet final : private PoolClient {
 public:
  HostSet(std::vector<ResidentField> fields, HostSetOptions options);
  ~HostSet() override;
  HostSet(const HostSet&) = delete;
  HostSet& operator=(const HostSet&) = delete;

  // The batch of this number. Nothing if the steps of one of its records fail, or do something that
  // edit_on_host does not support: the engine must make the batch.
  std::optional<Batch> take(uint64_t seed, uint64_t epoch, int64_t batch) EXCLUDES_LOCK(mutex_);

  ResidentStats stats() const;

 private:
  // A thread's working memory for a piece; reused.
  struct Tools {
    std::vector<int64_t> indices;
    std::unique_ptr<DeviceSteps> steps;
    std::vector<uint8_t> strip;
  };
  struct Open {
    Batch batch;
    uint64_t seed = 0;
    BatchRange range;
    int64_t claimed = 0, done = 0;  // rows
    bool failed = false;
  };
  struct Piece {
    Open* open = nullptr;
    int64_t first = 0, rows = 0;
    std::unique_ptr<Tools> tools;
  };

  int max_workers() const override { return options_.threads - 1; }
  bool work(Renderer& renderer) override EXCLUDES_LOCK(mutex_);

  void begin(uint64_t seed, uint64_t epoch, int64_t batch) EXCLUDES_LOCK(mutex_);
  bool works_ahead() const;
  bool front_is_done() const REQUIRES_LOCK(mutex_);
  bool has_work() const REQUIRES_LOCK(mutex_);
  bool may_open_ahead() const REQUIRES_LOCK(mutex_);
  bool claim(Piece& piece) REQUIRES_LOCK(mutex_);
  bool may_claim(Piece& piece) REQUIRES_LOCK(mutex_);
  void open_next() REQUIRES_LOCK(mutex_);
  std::optional<Batch> take_front() REQUIRES_LOCK(mutex_);

  void make(Piece piece) EXCLUDES_LOCK(mutex_);
  void fill(const Piece& piece);
  void fill_field(const ResidentField& field, const Piece& piece, uint8_t* to) const;
  void edit(const ResidentField& field, const Piece& piece, uint8_t* to) const;
  Batch view_of(uint64_t epoch, int64_t batch) const;
  static std::shared_ptr<void> memory_beyond(size_t bytes);

  const std::vector<ResidentField> fields_;
  const HostSetOptions options_;
  size_t row_bytes_ = 0;  // of all fields, as they are delivered
  int64_t piece_rows_ = 1;
  std::vector<std::shared_ptr<SlotRing>> rings_;  // by field. shared: batches outlive the set
  std::atomic<int64_t> beyond_{0};

  mutable Mutex mutex_;
  Condition progress_;
  uint64_t seed_ GUARDED_BY(mutex_) = 0, epoch_ GUARDED_BY(mutex_) = 0;
  int64_t next_open_ GUARDED_BY(mutex_) = -1;  // a batch's number; negative: no run
  std::deque<std::unique_ptr<Open>> open_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Tools>> tools_ GUARDED_BY(mutex_);
  int active_ GUARDED_BY(mutex_) = 0;         // pieces in progress
  bool stopping_ GUARDED_BY(mutex_) = false;  // no new pieces
  bool idle_ GUARDED_BY(mutex_) = true;       // a worker has found nothing to do
};

}  // namespace headrace
