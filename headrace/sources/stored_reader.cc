// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/stored_reader.h"

#include <map>
#include <new>
#include <thread>

#include "headrace/base/clock.h"
#include "headrace/base/mutex.h"

namespace headrace {

// Batches whose memory can be reused; batches in use return here when they are released. Each is
// reused by the thread that filled it before, because writing to memory that is modified in another
// core's cache is slow.
struct StoredReader::Spares : std::enable_shared_from_this<Spares> {
  Mutex mutex;
  std::map<std::thread::id, std::vector<std::unique_ptr<StoredBatch>>> free GUARDED_BY(mutex);

  std::shared_ptr<StoredBatch> take() EXCLUDES_LOCK(mutex) {
    const std::thread::id reader = std::this_thread::get_id();
    std::unique_ptr<StoredBatch> batch;
    {
      MutexLock lock(mutex);
      if (auto& own = free[reader]; !own.empty()) {
        batch = std::move(own.back());  // the latest one, whose memory is most likely in a cache
        own.pop_back();
      }
    }
    if (!batch) batch = std::make_unique<StoredBatch>();
    auto back = [self = shared_from_this(), reader](StoredBatch* used) {
      std::unique_ptr<StoredBatch> batch(used);
      MutexLock lock(self->mutex);
      try {
        self->free[reader].push_back(std::move(batch));
      } catch (const std::bad_alloc&) {
        // One batch fewer to reuse.
      }
    };
    return {batch.release(), std::move(back)};
  }
};

StoredReader::StoredReader(SourcePtr source)
    : source_(std::move(source)),
      wanted_(source_->schema().size(), true),
      spares_(std::make_shared<Spares>()) {}

std::shared_ptr<StoredBatch> StoredReader::read(std::span<const int64_t> numbers) const {
  std::shared_ptr<StoredBatch> batch = spares_->take();
  const double begin = now();
  batch->records.resize(numbers.size());
  source_->read(numbers, wanted_, batch->records);
  batch->read_seconds = now() - begin;
  return batch;
}

}  // namespace headrace
