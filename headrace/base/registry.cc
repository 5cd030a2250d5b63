// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/registry.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

namespace headrace {
namespace {

constinit std::atomic<uint64_t> registered = 0;

}  // namespace

struct NameTable::Entries {
  using Entry = std::pair<std::string_view, const void*>;
  std::mutex mutex;
  std::vector<Entry> sorted;

  std::vector<Entry>::iterator at(std::string_view name) {
    return std::ranges::lower_bound(sorted, name, {}, &Entry::first);
  }
};

NameTable::NameTable() : entries_(new Entries) {}

void NameTable::add(std::string_view name, const void* record) {
  std::lock_guard lock(entries_->mutex);
  entries_->sorted.insert(entries_->at(name), {name, record});
  registered.fetch_add(1, std::memory_order_release);
}

uint64_t registered_records() { return registered.load(std::memory_order_acquire); }

std::vector<const void*> NameTable::all() const {
  std::lock_guard lock(entries_->mutex);
  std::vector<const void*> records;
  for (const auto& entry : entries_->sorted) records.push_back(entry.second);
  return records;
}

const void* NameTable::find(std::string_view name) const {
  std::lock_guard lock(entries_->mutex);
  const auto found = entries_->at(name);
  return found != entries_->sorted.end() && found->first == name ? found->second : nullptr;
}

}  // namespace headrace
