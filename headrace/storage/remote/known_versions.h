// SPDX-License-Identifier: Apache-2.0
// The versions of many objects, 24 bytes each: a hash table of the hashes of their paths. If two
// paths have the same hash, the later one replaces the other: the caller checks what it finds. Not
// thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace headrace {

class KnownVersions {
 public:
  static constexpr size_t kMax = size_t{1} << 21;  // further objects are not stored

  struct Version {
    uint64_t inode = 0, size = 0;  // of FileIdentity
    bool operator==(const Version&) const = default;
  };
  std::optional<Version> find(uint64_t path) const {
    if (slots_.empty()) return {};
    const Slot& slot = slots_[place_of(path)];
    if (slot.path != path || slot.version.inode == 0) return {};
    return slot.version;
  }
  // Without an inode: the version is unknown.
  void set(uint64_t path, const Version& version) {
    if (path == 0) return;
    if (4 * (count_ + 1) > 3 * slots_.size()) grow();
    Slot& slot = slots_[place_of(path)];
    if (slot.path == 0) {
      if (version.inode == 0 || count_ == kMax) return;
      slot.path = path;
      ++count_;
    }
    slot.version = version;
  }
  void forget(uint64_t path) {
    if (!slots_.empty()) set(path, {});
  }
  void clear() {
    slots_ = {};
    count_ = 0;
  }

 private:
  struct Slot {
    uint64_t path = 0;  // 0: none
    Version version = {};
  };
  // Where the path is, or would be.
  size_t place_of(uint64_t path) const {
    size_t at = path & (slots_.size() - 1);
    while (slots_[at].path != 0 && slots_[at].path != path) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Slot> old =
        std::exchange(slots_, std::vector<Slot>(std::max<size_t>(64, 2 * slots_.size())));
    for (const Slot& each : old) {
      if (each.path != 0) slots_[place_of(each.path)] = each;
    }
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace headrace
