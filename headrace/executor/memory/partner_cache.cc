// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/memory/partner_cache.h"

namespace headrace {
namespace {

size_t bytes_of(const Record& record) {
  size_t bytes = sizeof(CachedPartner) + record.fields.size() * sizeof(FieldValue);
  for (const FieldValue& value : record.fields) {
    bytes += value.bytes.size() + value.shares.size() * sizeof(float);
    if (const auto picture = value.picture.pixels()) bytes += picture->pixels.capacity();
  }
  return bytes;
}

}  // namespace

std::shared_ptr<const CachedPartner> PartnerCache::find(int64_t epoch, int64_t position) const {
  MutexLock lock(mutex_);
  const auto found = kept_.find({epoch, position});
  return found == kept_.end() ? nullptr : found->second.partner;
}

void PartnerCache::keep(int64_t epoch, CachedPartner partner) {
  const std::pair key{epoch, partner.record.position};
  const size_t bytes = bytes_of(partner.record);
  if (bytes > limit_ || find(epoch, partner.record.position)) return;
  auto shared = std::make_shared<const CachedPartner>(std::move(partner));
  std::map<std::pair<int64_t, int64_t>, Kept> dropped;  // freed after the lock is released
  MutexLock lock(mutex_);
  while (held_ + bytes > limit_ && kept_.begin()->first < key) {
    held_ -= kept_.begin()->second.bytes;
    dropped.insert(kept_.extract(kept_.begin()));
  }
  if (held_ + bytes > limit_) return;
  if (kept_.try_emplace(key, Kept{std::move(shared), bytes}).second) held_ += bytes;
}

void PartnerCache::clear() {
  MutexLock lock(mutex_);
  kept_.clear();
  held_ = 0;
}

size_t PartnerCache::held_bytes() const {
  MutexLock lock(mutex_);
  return held_;
}

}  // namespace headrace
