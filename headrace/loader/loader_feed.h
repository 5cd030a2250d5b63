// SPDX-License-Identifier: Apache-2.0
// A loader's batches on their way to devices: out of its slots, which are pinned when the loader
// was made with LoaderOptions::device, without a copy in between.
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
  LoaderState state;       // with this batch received
  LoaderMark before = {};  // and without it
  uint64_t turn = 0;       // how often batches had been made again by then
};

// One loader's batches, each divided by rows over so many devices: the first rows are the first
// device's, and no device has more than one row more than another, but where rows are mixed: then
// each has whole groups. There is one read-ahead, one cache and one order, whatever the number of
// devices.
//
// While it is fed from, the loader belongs to the prefetchers' threads, but for what is const.
class SharedBatches {
 public:
  // shared: the loader outlives its last use here. most_ahead: batches that one device may be in
  // front of another.
  SharedBatches(std::shared_ptr<Loader> loader, int parts, int most_ahead);
  std::optional<HostBatch> next(int part, const std::function<bool()>& stopping)
      EXCLUDES_LOCK(mutex_);
  // The next batch is this one again, of whichever part it is. Every part is told so, and gets
  // nothing until it is; the first one sets the loader back.
  void again(int part, const FedBatch& batch) EXCLUDES_LOCK(mutex_);

 private:
  bool take_one(uint64_t turn, const std::function<bool()>& stopping) EXCLUDES_LOCK(mutex_);
  const std::shared_ptr<Loader> loader_;
  const int parts_, most_ahead_;
  Mutex mutex_;
  Condition changed_;
  bool taking_ GUARDED_BY(mutex_) = false;  // one thread has the loader, without the lock
  bool over_ GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ GUARDED_BY(mutex_);
  uint64_t turn_ GUARDED_BY(mutex_) = 0;
  struct Part {
    std::list<HostBatch> waiting = {};
    uint64_t turn = 0;  // of which it knows
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
