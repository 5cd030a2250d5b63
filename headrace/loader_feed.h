// SPDX-License-Identifier: Apache-2.0
// A loader's batches on their way to a device: out of its slots, which are pinned when the loader
// was made with LoaderOptions::device, without a copy in between.
#pragma once

#include <memory>

#include "headrace/delivery/prefetcher.h"
#include "headrace/loader.h"

namespace headrace {

// What a delivered batch carries as DeviceBatch::rest. Its dense fields are the batch's tensors, in
// order; those that are lists stay on the host.
struct FedBatch {
  Batch batch;
  LoaderState state;  // with this batch received
};

// While it is fed from, the loader belongs to the prefetcher's thread, but for what is const.
class LoaderFeed final : public BatchFeed {
 public:
  // shared: the loader outlives its last use here.
  explicit LoaderFeed(std::shared_ptr<Loader> loader);
  std::optional<HostBatch> next(const std::function<bool()>& stopping) override;

 private:
  std::shared_ptr<Loader> loader_;
};

}  // namespace headrace
