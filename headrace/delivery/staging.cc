// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/staging.h"

#include "headrace/base/pages.h"

namespace headrace {
namespace {

constexpr size_t kPage = 4096;

size_t rounded(size_t bytes) { return (bytes + bytes / 8 + kPage - 1) / kPage * kPage; }

}  // namespace

PinnedPages::PinnedPages(DevicePtr device, size_t bytes)
    : device_(std::move(device)),
      bytes_(bytes),
      pages_(map_pages(bytes)),
      pinned_(device_->pin(pages_, bytes)) {}

PinnedPages::~PinnedPages() {
  if (pinned_) device_->unpin(pages_);
  unmap_pages(pages_, bytes_);
}

struct PinnedPieces::Free {
  Mutex mutex;
  std::vector<std::unique_ptr<PinnedPages>> pieces GUARDED_BY(mutex);
};

PinnedPieces::PinnedPieces(DevicePtr device)
    : device_(std::move(device)), free_(std::make_shared<Free>()) {}

std::shared_ptr<uint8_t> PinnedPieces::take(size_t bytes) {
  std::unique_ptr<PinnedPages> piece;
  {
    MutexLock lock(free_->mutex);
    if (!free_->pieces.empty()) {
      piece = std::move(free_->pieces.back());
      free_->pieces.pop_back();
    }
  }
  if (!piece || piece->bytes() < bytes) {
    piece = nullptr;  // before the next one is allocated
    piece = std::make_unique<PinnedPages>(device_, rounded(bytes));
  }
  PinnedPages* const held = piece.release();
  return {static_cast<uint8_t*>(held->data()), [free = free_, held](uint8_t*) {
            std::unique_ptr<PinnedPages> back(held);
            MutexLock lock(free->mutex);
            free->pieces.push_back(std::move(back));
          }};
}

StagingRing::StagingRing(DevicePtr device, int slabs, size_t memory_limit)
    : device_(std::move(device)), limit_(memory_limit), places_(static_cast<size_t>(slabs)) {}

StagingRing::~StagingRing() {
  for (const Place& place : places_) {
    for (const EventPtr& event : place.busy) wait_until_done(*event);
  }
}

void* StagingRing::take(size_t bytes) {
  next_ = (next_ + 1) % places_.size();
  Place& place = places_[next_];
  for (const EventPtr& event : place.busy) event->wait_on_host();
  place.busy.clear();
  if (place.pages && place.pages->bytes() >= bytes) return place.pages->data();
  place.pages = nullptr;
  const size_t wanted = rounded(bytes);
  if (limit_ > 0 && this->bytes() + wanted > limit_) return nullptr;
  place.pages = std::make_unique<PinnedPages>(device_, wanted);
  all_pinned_ &= place.pages->pinned();
  return place.pages->data();
}

void StagingRing::fence(EventPtr event) { places_[next_].busy.push_back(std::move(event)); }

size_t StagingRing::bytes() const {
  size_t sum = 0;
  for (const Place& place : places_) sum += place.pages ? place.pages->bytes() : 0;
  return sum;
}

}  // namespace headrace
