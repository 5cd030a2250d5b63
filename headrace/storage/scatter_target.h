// SPDX-License-Identifier: Apache-2.0
// Destination of bytes that are contiguous in a file: one or several memory ranges, with gaps for
// bytes that are not needed (scatter read). The caller owns the memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace headrace {

class ScatterTarget {
 public:
  ScatterTarget() = default;
  ScatterTarget(std::span<uint8_t> one) { add(one.data(), one.size()); }

  // Appends a range; null: a gap.
  void add(uint8_t* to, uint64_t bytes) {
    if (bytes == 0) return;
    places_.push_back({size_, to});
    size_ += bytes;
  }
  uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // The destination of the bytes [offset, offset + bytes), clipped to size().
  ScatterTarget part(uint64_t offset, uint64_t bytes) const {
    ScatterTarget out;
    const uint64_t last = std::min(size_, offset + bytes);
    for (size_t i = 0; i < places_.size(); ++i) {
      const uint64_t end = i + 1 < places_.size() ? places_[i + 1].begin : size_;
      const uint64_t from = std::max(places_[i].begin, offset), to = std::min(end, last);
      if (from >= to) continue;
      uint8_t* const memory = places_[i].to;
      out.add(memory ? memory + (from - places_[i].begin) : nullptr, to - from);
    }
    return out;
  }

  // REQUIRES: offset + bytes.size() <= size().
  void write(uint64_t offset, std::span<const uint8_t> bytes) const {
    if (bytes.empty()) return;
    auto place = std::ranges::upper_bound(places_, offset, {}, &Place::begin) - 1;
    while (!bytes.empty()) {
      const uint64_t end = place + 1 == places_.end() ? size_ : (place + 1)->begin;
      const size_t count = std::min<uint64_t>(bytes.size(), end - offset);
      if (place->to) std::memcpy(place->to + (offset - place->begin), bytes.data(), count);
      bytes = bytes.subspan(count);
      offset += count;
      ++place;
    }
  }

 private:
  struct Place {
    uint64_t begin;
    uint8_t* to;
  };
  std::vector<Place> places_;
  uint64_t size_ = 0;
};

}  // namespace headrace
