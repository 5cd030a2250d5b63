// SPDX-License-Identifier: Apache-2.0
// Passes a loader's batches to prefetchers for devices: directly from its slots, without a copy in
// between. If LoaderOptions::device is set, the slots are pinned.
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/delivery/prefetcher.h"
#include "headrace/loader.h"

namespace headrace {

// The contents of DeviceBatch::rest. The batch's dense fields are its tensors, in
// order; those that are lists stay on the host.
struct FedBatch {
  Batch batch;
  LoaderState state;       // after receiving this batch
  LoaderMark before = {};  // before receiving it
  uint64_t turn = 0;       // number of times that batches had been made again by then
};

// One loader's batches, each divided by rows over several devices: the first device gets the first
// rows, and the numbers of rows differ by at most 1, unless rows are mixed: then each device gets
// whole groups. There is one read-ahead, one cache and one order, regardless of the number of
// devices.
//
// While it is in use, only the prefetchers' threads may call non-const members of the loader.
class SharedBatches {
 public:
  // shared: keeps the loader alive. max_ahead: how many batches one device may be ahead of
  // another.
  SharedBatches(std::shared_ptr<Loader> loader, int parts, int max_ahead);
  std::optional<HostBatch> next(int part, const std::function<bool()>& stopping)
      EXCLUDES_LOCK(mutex_);
  // Makes this batch, of any part, the next one again. Every part must call this, and gets no
  // batches until it does; the first call sets the loader back.
  void again(int part, const FedBatch& batch) EXCLUDES_LOCK(mutex_);

 private:
  bool take_one(uint64_t turn, const std::function<bool()>& stopping) EXCLUDES_LOCK(mutex_);
  const std::shared_ptr<Loader> loader_;
  const int parts_, max_ahead_;
  Mutex mutex_;
  Condition changed_;
  bool taking_ GUARDED_BY(mutex_) = false;  // a thread is using the loader, without the lock
  bool over_ GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ GUARDED_BY(mutex_);
  uint64_t turn_ GUARDED_BY(mutex_) = 0;
  struct Part {
    std::list<HostBatch> waiting = {};
    uint64_t turn = 0;  // the last one that this part has called again() for
  };
  std::vector<Part> of_ GUARDED_BY(mutex_);  // by part
};

class LoaderFeed final : public BatchFeed {
 public:
  // shared: by the feeds of all parts.
  LoaderFeed(std::shared_ptr<SharedBatches> batches, int part)
      : batches_(std::move(batches)), part_(part) {}
  std::optional<HostBatch> next(const std::function<bool()>& stopping) override {
    return batches_->next(part_, stopping);
  }
  void again(const std::shared_ptr<void>& rest) override {
    batches_->again(part_, *static_cast<const FedBatch*>(rest.get()));
  }

 private:
  std::shared_ptr<SharedBatches> batches_;
  int part_;
};

}  // namespace headrace
